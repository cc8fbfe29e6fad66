import { Loader } from '@mantine/core';
import { useDocumentVisibility } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import { formatWhole } from '@/lib/format';
import { readPicture } from './livePicture';
import classes from './replay.module.css';

const RETRY_MS = 2000;

/** The agent as it plays in training at this moment; asks for pictures only while it can be seen. */
export function LivePlay({ run }: { run: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [agentSteps, setAgentSteps] = useState<number | null>(null);
  const visible = useDocumentVisibility() === 'visible';

  useEffect(() => {
    if (!visible) return;
    let socket: WebSocket | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;
    let ended = false;

    const show = async (message: ArrayBuffer): Promise<void> => {
      const picture = readPicture(message);
      if (!picture) return;
      const bitmap = await createImageBitmap(picture.jpeg);
      const context = canvas.current?.getContext('2d');
      if (context && !ended) {
        if (context.canvas.width !== bitmap.width) context.canvas.width = bitmap.width;
        if (context.canvas.height !== bitmap.height) context.canvas.height = bitmap.height;
        context.drawImage(bitmap, 0, 0);
        setAgentSteps(picture.agentSteps);
      }
      bitmap.close();
    };
    const open = (): void => {
      socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/v1/runs/${run}/live`);
      socket.binaryType = 'arraybuffer';
      // A picture that cannot be read is followed by another.
      socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => void show(data).catch(() => undefined);
      socket.onclose = () => {
        if (!ended) retry = setTimeout(open, RETRY_MS);
      };
    };
    open();
    return () => {
      ended = true;
      clearTimeout(retry);
      socket?.close();
    };
  }, [run, visible]);

  return (
    <div className={`${classes.player} ${classes.live}`}>
      <div className={classes.stage}>
        <canvas
          ref={canvas}
          role="img"
          aria-label="The agent playing in training, live"
          hidden={agentSteps === null}
        />
        {agentSteps === null && (
          <span className="row" role="status">
            <Loader size={14} color="gray" />
            waiting for the first picture…
          </span>
        )}
      </div>
      <span className="muted">
        {agentSteps === null ? (
          'Pictures come while someone watches.'
        ) : (
          <>
            with the parameters of agent step <span className="num">{formatWhole(agentSteps)}</span>
          </>
        )}
      </span>
    </div>
  );
}
