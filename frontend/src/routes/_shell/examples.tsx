import { useDocumentTitle } from '@mantine/hooks';
import { createFileRoute } from '@tanstack/react-router';
import { Welcome } from '@/features/home/Welcome';

export const Route = createFileRoute('/_shell/examples')({ component: ExamplesPage });

/** What an empty installation shows, at any time: runs to start, and ways to record others. */
function ExamplesPage() {
  useDocumentTitle('Examples · Callboard');
  return (
    <div className="page">
      <Welcome />
    </div>
  );
}
