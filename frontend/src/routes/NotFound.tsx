import { useDocumentTitle } from '@mantine/hooks';
import { Empty } from '@/components/feedback';
import { ButtonLink } from '@/components/links';
import { Frame } from '@/features/frame/Frame';

/** What stands at an address of nothing, with the way to everything else around it. */
export function NotFound() {
  useDocumentTitle('Not found · Callboard');
  return (
    <Frame>
      <div className="page">
        <h1 className="page-title">Not found</h1>
        <Empty action={<ButtonLink to="/">To the runs</ButtonLink>}>There is no page at this address.</Empty>
      </div>
    </Frame>
  );
}
