import { Empty } from '@/components/feedback';
import { ButtonLink } from '@/components/links';

export function NotFound() {
  return (
    <Empty action={<ButtonLink to="/">To the runs</ButtonLink>}>There is no page at this address.</Empty>
  );
}
