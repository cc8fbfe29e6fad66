import { useCallback, useEffect, useRef, useState, type RefObject } from 'react';
import { openSocket } from '@/api/socket';
import { served } from '@/lib/base';
import { looksSame, readMessage, type Status } from './stream';

const RETRY_MS = 1000;
/** A game shows a frame at least every half a second, also while it is paused. */
const SILENT_MS = 3000;

type PlayStream = {
  status: Status | null;
  /** Why the session has ended; null while it is open. */
  ended: string | null;
  /** Why the service has refused the latest message. */
  refused: string | null;
  /** Whether frames have come, and none for some seconds. */
  isSilent: boolean;
  /** Number of the connection, from 1; 0 before the first. */
  connection: number;
  send: (message: object) => void;
};

/** Connects to a session: draws its newest frame, and sends messages. */
export function usePlayStream(session: string, canvas: RefObject<HTMLCanvasElement | null>): PlayStream {
  const socket = useRef<WebSocket>(undefined);
  const [status, setStatus] = useState<Status | null>(null);
  const [ended, setEnded] = useState<string | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const [isSilent, setSilent] = useState(false);
  const [connection, setConnection] = useState(0);

  useEffect(() => {
    let retry: ReturnType<typeof setTimeout> | undefined;
    let silence: ReturnType<typeof setTimeout> | undefined;
    let closed = false;
    let newest: Blob | null = null;
    let drawing = false;
    let shown: Status | null = null;

    // While one frame is decoded, later ones replace each other: none is ever drawn late.
    const draw = async (): Promise<void> => {
      drawing = true;
      while (newest !== null && !closed) {
        const jpeg = newest;
        newest = null;
        const bitmap = await createImageBitmap(jpeg).catch(() => null); // a corrupt frame is skipped
        const context = canvas.current?.getContext('2d');
        if (bitmap && context) {
          if (context.canvas.width !== bitmap.width) context.canvas.width = bitmap.width;
          if (context.canvas.height !== bitmap.height) context.canvas.height = bitmap.height;
          context.drawImage(bitmap, 0, 0);
        }
        bitmap?.close();
      }
      drawing = false;
    };
    const open = async (): Promise<void> => {
      const opened = await openSocket(served(`/api/v1/play/${session}/stream`));
      if (closed) {
        opened.close();
        return;
      }
      opened.binaryType = 'arraybuffer';
      opened.onopen = () => setConnection((number) => number + 1);
      opened.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => {
        if (typeof data === 'string') {
          setRefused((JSON.parse(data) as { refused: string }).refused);
          return;
        }
        const message = readMessage(data);
        clearTimeout(silence);
        setSilent(false);
        if ('ended' in message) {
          setEnded(message.ended);
          return;
        }
        silence = setTimeout(() => setSilent(true), SILENT_MS);
        if (!looksSame(shown, message.status)) {
          shown = message.status;
          setStatus(shown);
        }
        newest = message.jpeg ?? newest;
        if (!drawing) void draw();
      };
      opened.onclose = ({ code, reason }) => {
        if (closed) return;
        if (code === 1000) setEnded(reason);
        else {
          if (reason) setRefused(reason);
          retry = setTimeout(() => void open(), RETRY_MS);
        }
      };
      socket.current = opened;
    };
    void open();
    return () => {
      closed = true;
      clearTimeout(retry);
      clearTimeout(silence);
      socket.current?.close();
    };
  }, [session, canvas]);

  const send = useCallback((message: object) => {
    setRefused(null);
    if (socket.current?.readyState === WebSocket.OPEN) socket.current.send(JSON.stringify(message));
  }, []);
  return { status, ended, refused, isSilent, connection, send };
}
