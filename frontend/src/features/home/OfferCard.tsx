import { LoadingButton } from '@/components/controls';
import { PermittedButton } from '@/components/permission';
import { Term } from '@/components/Term';
import { environmentClip, environmentImage } from '@/lib/environments';
import classes from './home.module.css';
import type { HomeCard } from './cards';
import { LoopedVideo } from './LoopedVideo';

type Props = {
  card: HomeCard;
  /** Why this account may not start runs. */
  denied: string | undefined;
  primary: boolean;
  moving: boolean;
  starting: boolean;
  unavailable: boolean;
  onStart: () => void;
};

/** An environment to start with: what one will see, how long it takes, and one button. */
export function OfferCard({ card, denied, primary, moving, starting, unavailable, onStart }: Props) {
  const { title, pace, sight, method, agentSteps, duration, offer } = card;
  const variant = primary ? 'filled' : 'default';
  return (
    <section className={`panel ${classes.card}`} aria-label={title}>
      <div className={classes.media}>
        <LoopedVideo
          video={environmentClip(offer.environment)}
          still={environmentImage(offer.environment)}
          moving={moving}
        />
      </div>
      <div className={classes.text}>
        <h2 className={classes.title}>
          {title}
          <span className={classes.pace}>{pace}</span>
        </h2>
        <p>{sight}</p>
        <p className={classes.facts}>
          <Term>{method}</Term> · {agentSteps} <Term>agent steps</Term> · {duration}
        </p>
        {denied === undefined ? (
          <LoadingButton variant={variant} loading={starting} unavailable={unavailable} onClick={onStart}>
            Train on {title}
          </LoadingButton>
        ) : (
          <PermittedButton denied={denied}>Train on {title}</PermittedButton>
        )}
      </div>
    </section>
  );
}
