import { useState } from 'preact/hooks';

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [isDone, setIsDone] = useState(false);
  return (
    <button
      type="button"
      class="copy"
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          setIsDone(true);
          setTimeout(() => setIsDone(false), 1500);
        });
      }}
    >
      <span aria-live="polite">{isDone ? 'Copied' : label}</span>
    </button>
  );
}
