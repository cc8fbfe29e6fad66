import { ActionIcon, Button, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { fieldError } from '@/api/problem';
import { MAX_TAG, MAX_TAGS } from '@/lib/runBounds';
import { queryOfTag } from '@/lib/run';
import { defined } from '@/lib/search';
import classes from './edit.module.css';

/** The typed tags, separated by commas, that the run does not have yet. */
const newTags = (typed: string, tags: readonly string[]): string[] => [
  ...new Set(
    typed
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '' && !tags.includes(name)),
  ),
];

/** Why these tags cannot be added. */
function tagProblem(added: readonly string[], tags: readonly string[]): string | null {
  if (added.some((tag) => /["\\]/.test(tag))) return 'Remove the quotes and backslashes.';
  if (added.some((tag) => tag.length > MAX_TAG)) return `A tag has at most ${MAX_TAG} characters.`;
  return tags.length + added.length > MAX_TAGS ? `A run has at most ${MAX_TAGS} tags.` : null;
}

type Props = {
  tags: readonly string[];
  /** Whether the run is archived: a list without such runs would lack it. */
  archived?: boolean;
  save: (what: string, tags: string[]) => Promise<void>;
  denied: string | undefined;
};

/** A run's tags, each of which can be removed, and a field to add more. */
export function TagEditor({ tags, archived = false, save, denied }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const add = useRef<HTMLButtonElement>(null);

  const change = async (what: string, next: string[]): Promise<boolean> => {
    try {
      await save(what, next);
      setError(null);
      return true;
    } catch (problem) {
      setError(fieldError(problem, 'tags'));
      return false;
    }
  };
  const submit = async (text: string): Promise<void> => {
    const added = newTags(text, tags);
    const problem = tagProblem(added, tags);
    setError(problem);
    if (problem !== null) return;
    const what = `Added ${added.length === 1 ? 'tag' : 'tags'} ${added.join(', ')}`;
    if (added.length === 0 || (await change(what, [...tags, ...added]))) setTyped('');
  };
  const close = (): void => {
    setTyped(null);
    setError(null);
    // After the button has replaced the field.
    requestAnimationFrame(() => add.current?.focus());
  };

  return (
    <span className={classes.tags}>
      {tags.map((tag) => (
        <span key={tag} className={classes.tag}>
          <Link
            to="/"
            search={defined({ q: queryOfTag(tag), archived: archived || undefined })}
            title="Runs with this tag"
          >
            {tag}
          </Link>
          {denied === undefined && (
            <ActionIcon
              size={24}
              variant="transparent"
              color="gray"
              aria-label={`Remove tag ${tag}`}
              title={`Remove tag ${tag}`}
              onClick={() => {
                const left = tags.filter((other) => other !== tag);
                void change(`Removed tag ${tag}`, left).then(() => add.current?.focus());
              }}
            >
              <IconX size={12} />
            </ActionIcon>
          )}
        </span>
      ))}
      {typed === null ? (
        <>
          <Button
            ref={add}
            size="compact-xs"
            variant="subtle"
            color="gray"
            leftSection={<IconPlus size={12} />}
            title={denied}
            {...(denied ? { 'data-disabled': true, 'aria-disabled': true } : {})}
            onClick={() => !denied && setTyped('')}
          >
            Add tag
          </Button>
          {error && (
            <span role="alert" className={classes.error}>
              {error}
            </span>
          )}
        </>
      ) : (
        <form
          className={classes.form}
          onSubmit={(event) => {
            event.preventDefault();
            void submit(typed);
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            event.stopPropagation();
            close();
          }}
        >
          <TextInput
            autoFocus
            aria-label="New tags"
            placeholder="tag, another tag"
            value={typed}
            error={error}
            onChange={({ currentTarget }) => {
              setTyped(currentTarget.value);
              setError(null);
            }}
          />
          <Button type="submit">Add</Button>
          <Button variant="default" onClick={close}>
            {typed.trim() === '' ? 'Done' : 'Cancel'}
          </Button>
        </form>
      )}
    </span>
  );
}
