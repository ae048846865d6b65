import { useEffect, useState } from 'preact/hooks';
import { CheckIcon, CopyIcon } from './icons.tsx';

const SHOWN_MS = 1500;

interface CopyButtonProps {
  readonly text: string;
  /** What stands on it; unset: an icon alone. */
  readonly label?: string;
  /** What a screen reader says where nothing stands on it, and what is shown when it is pointed at. */
  readonly name?: string;
  /** In a grid, whose own keys do it. */
  readonly isSkipped?: boolean;
}

export function CopyButton({ text, label, name = `Copy ${text}`, isSkipped = false }: CopyButtonProps) {
  const [isDone, setIsDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setIsDone(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isDone]);
  return (
    <button
      type="button"
      class={label === undefined ? 'copy copy-icon' : 'copy'}
      title={name}
      aria-label={isDone ? 'Copied' : (label ?? name)}
      tabIndex={isSkipped ? -1 : 0}
      onClick={(event) => {
        event.stopPropagation();
        void copyText(text).then(setIsDone);
      }}
    >
      {isDone ? <CheckIcon /> : <CopyIcon />}
      {label !== undefined && <span>{isDone ? 'Copied' : label}</span>}
    </button>
  );
}

/** Whether it is in the clipboard. Pages without TLS at another address than loopback have no `navigator.clipboard`. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  const before = document.activeElement;
  field.value = text;
  field.className = 'visually-hidden';
  document.body.append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return isDone;
}
