import { Loader } from '@mantine/core';
import { useDocumentVisibility } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import { openSocket } from '@/api/socket';
import { Term } from '@/components/Term';
import { served } from '@/lib/base';
import { formatInteger } from '@/lib/format';
import classes from './replay.module.css';

/** Each message starts with the agent step of the parameters in use: u64, little-endian. */
const HEADER_BYTES = 8;

type Frame = { agentSteps: number; jpeg: Blob };

/** Parses a message of `/runs/{id}/live`; null for one without an image. */
export function readFrame(message: ArrayBuffer): Frame | null {
  if (message.byteLength <= HEADER_BYTES) return null;
  const agentSteps = Number(new DataView(message).getBigUint64(0, true));
  return { agentSteps, jpeg: new Blob([message.slice(HEADER_BYTES)], { type: 'image/jpeg' }) };
}

const RETRY_MS = 2000;

/** The agent live in training; frames are requested only while the tab is visible. */
export function LiveView({ run }: { run: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [agentSteps, setAgentSteps] = useState<number | null>(null);
  const visible = useDocumentVisibility() === 'visible';

  useEffect(() => {
    if (!visible) return;
    let socket: WebSocket | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;
    let closed = false;

    let newest: Frame | null = null;
    let drawing = false;

    // While one frame is decoded, later ones replace each other: none is ever drawn late.
    const draw = async (): Promise<void> => {
      drawing = true;
      while (newest !== null && !closed) {
        const frame: Frame = newest;
        newest = null;
        const bitmap = await createImageBitmap(frame.jpeg).catch(() => null); // a corrupt frame is skipped
        const context = canvas.current?.getContext('2d');
        if (bitmap && context) {
          if (context.canvas.width !== bitmap.width) context.canvas.width = bitmap.width;
          if (context.canvas.height !== bitmap.height) context.canvas.height = bitmap.height;
          context.drawImage(bitmap, 0, 0);
          setAgentSteps(frame.agentSteps);
        }
        bitmap?.close();
      }
      drawing = false;
    };
    const open = async (): Promise<void> => {
      const opened = await openSocket(served(`/api/v1/runs/${run}/live`));
      if (closed) {
        opened.close();
        return;
      }
      opened.binaryType = 'arraybuffer';
      opened.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
        newest = readFrame(data) ?? newest;
        if (!drawing) void draw();
      };
      opened.onclose = () => {
        if (!closed) retry = setTimeout(() => void open(), RETRY_MS);
      };
      socket = opened;
    };
    void open();
    return () => {
      closed = true;
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
          aria-label="Live view of the agent in training"
          hidden={agentSteps === null}
        />
        {agentSteps === null && (
          <span className="row" role="status">
            <Loader size={14} color="gray" />
            Waiting for the first frame…
          </span>
        )}
      </div>
      <span className="muted">
        {agentSteps === null ? (
          'Frames are streamed only while someone watches.'
        ) : (
          <>
            <Term>Parameters from agent step</Term> <span className="num">{formatInteger(agentSteps)}</span>
          </>
        )}
      </span>
    </div>
  );
}
