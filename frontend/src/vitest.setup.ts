import { configure } from '@testing-library/dom';

// A deadline costs nothing when a test passes; a loaded machine may need seconds for a render.
configure({ asyncUtilTimeout: 60_000 });
