import { createFileRoute } from '@tanstack/react-router';
import { AppShell } from '@/features/shell/AppShell';

/** What is around every page but the login. Loaded with the router, not by itself. */
export const Route = createFileRoute('/_shell')({ component: AppShell, codeSplitGroupings: [] });
