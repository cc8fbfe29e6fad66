import { Button, SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type CSSProperties } from 'react';
import { saliencyQuery, type Saliency } from '@/api/saliency';
import { Problem } from '@/components/feedback';
import { formatCount, formatInteger, formatNumber } from '@/lib/format';
import { COLOURS, drawHeat, maximum } from './heat';
import classes from './saliency.module.css';

const SCALE = 4;

type Props = {
  run: string;
  episode: string;
  /** The decision whose map is shown. */
  decision: number;
  onClose: () => void;
};

/** Where the network's input matters to its policy, or its value, at a decision. */
export default function SaliencyPanel({ run, episode, decision, onClose }: Props) {
  const [of, setOf] = useState<'policy' | 'value'>('policy');
  const [retries, setRetries] = useState(0);
  const { data, error } = useQuery(saliencyQuery(run, episode, decision, retries));
  const saliency = data === 'pending' ? undefined : data;
  const isQ = saliency?.action_values ?? false;
  return (
    <section className={`panel ${classes.panel}`} aria-label="Saliency">
      <div className="row wrap">
        <h2 className="section-title">Saliency at decision {formatInteger(decision + 1)}</h2>
        <span className="grow" />
        <SegmentedControl
          size="xs"
          aria-label="Saliency of"
          value={of}
          data={[
            { value: 'policy', label: isQ ? 'Q' : 'Policy' },
            { value: 'value', label: isQ ? 'max Q' : 'V' },
          ]}
          onChange={setOf}
        />
        <Button variant="default" onClick={onClose}>
          Hide
        </Button>
      </div>
      {error && !saliency ? (
        <Problem error={error} onRetry={() => setRetries(retries + 1)} />
      ) : saliency ? (
        <Map saliency={saliency} of={of} />
      ) : (
        <div role="status" aria-label="A worker is computing the map…">
          <Skeleton height={84 * SCALE} width={84 * SCALE} maw="100%" radius={2} />
        </div>
      )}
    </section>
  );
}

function Map({ saliency, of }: { saliency: Saliency; of: 'policy' | 'value' }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (canvas.current) drawHeat(canvas.current, saliency, of, SCALE);
  }, [saliency, of]);
  const { map, action_values: isQ, agent_steps, decision } = saliency;
  const what = of === 'value' ? (isQ ? 'max Q' : 'V') : isQ ? 'Q of all actions' : 'the policy’s logits';
  return (
    <div className={classes.map}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Saliency of ${what} over the newest frame of the network input at decision ${formatInteger(decision + 1)}`}
      />
      <div className={classes.about}>
        <div className={classes.legend}>
          <span className="num">0</span>
          <i style={{ '--heat': `rgb(${COLOURS[of].join(' ')})` } as CSSProperties} />
          <span className="num">{formatNumber(maximum(map[of]))}</span>
        </div>
        <p>Half the squared change of {what} where the input is blurred around a point.</p>
        <p className="muted">
          Perturbation saliency (Greydanus et al. 2018), of the checkpoint at {formatCount(agent_steps)} agent
          steps. All stacked frames are blurred; the newest is shown.
        </p>
      </div>
    </div>
  );
}
