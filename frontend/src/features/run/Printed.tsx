import { printed } from '@/lib/printed';

/** Text of a program as a terminal would have left it. Loaded when a run has some. */
export default function Printed({ text }: { text: string }) {
  return printed(text);
}
