/** A text field with a list of what can be meant. Keys and names as the ARIA Authoring Practices have them. */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import {
  type NameChoice,
  type ChoiceEvent,
  type ChoiceState,
  afterEvent,
  noChoices,
} from './packetChoices.ts';

interface ComboboxProps {
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  /** What the text may become. */
  readonly list: (text: string, signal: AbortSignal) => Promise<readonly NameChoice[]>;
  readonly error: { readonly message: string; readonly hint?: string | undefined } | undefined;
  /** A number that grows asks for the focus, with the list open. */
  readonly focusRound?: number;
}

/** After the last key, so that not every letter is a question. */
const PAUSE_MS = 120;

export function Combobox(props: ComboboxProps) {
  const { name, label, placeholder, value, onValue, list, error, focusRound = 0 } = props;
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [state, setState] = useState<ChoiceState>(() => noChoices(value));
  const shown = state.text === value ? state : { ...state, text: value };
  const send = (event: ChoiceEvent): boolean => {
    const next = afterEvent(shown, event);
    setState(next.state);
    if (next.state.text !== value) onValue(next.state.text);
    return next.isTaken;
  };
  useChoices(value, shown.isOpen, list, (choices) =>
    setState((before) => afterEvent({ ...before, text: value }, { kind: 'listed', choices }).state),
  );
  useEffect(() => {
    if (focusRound === 0) return;
    input.current?.focus();
    setState((before) => ({ ...before, isOpen: true }));
  }, [focusRound]);
  const isOpen = shown.isOpen && shown.choices.length > 0;
  const active = isOpen ? shown.choices[shown.active] : undefined;
  return (
    <div class="combobox">
      <label for={id}>{label}</label>
      <input
        id={id}
        ref={input}
        name={name}
        class="mono"
        value={value}
        placeholder={placeholder}
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-invalid={error !== undefined}
        {...(error && { 'aria-describedby': `${id}-error` })}
        {...(active && { 'aria-activedescendant': `${id}-${shown.active}` })}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        required
        onInput={(event) => send({ kind: 'typed', text: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (send({ kind: 'key', key: event.key, isAlt: event.altKey })) event.preventDefault();
        }}
        onClick={() => setState({ ...shown, isOpen: true })}
        onBlur={() => send({ kind: 'left' })}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={label} hidden={!isOpen}>
        {shown.choices.map((choice, index) => (
          <li
            key={choice.value}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === shown.active}
            // The field keeps the focus, so that its list stays until the click is done.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => send({ kind: 'chosen', index })}
          >
            <span class="mono">{choice.value}</span> <span class="quiet">{choice.note}</span>
          </li>
        ))}
      </ul>
      {error && (
        <p id={`${id}-error`} class="field-error" role="alert">
          <span>{error.message}</span>
          {error.hint !== undefined && <span class="quiet"> {error.hint}</span>}
        </p>
      )}
    </div>
  );
}

/** Asks for the list while it is open. A failure leaves it empty: the text is free. */
function useChoices(
  text: string,
  isOpen: boolean,
  list: ComboboxProps['list'],
  onChoices: (choices: readonly NameChoice[]) => void,
): void {
  const latest = useRef(onChoices);
  latest.current = onChoices;
  useEffect(() => {
    if (!isOpen) return;
    const ended = new AbortController();
    const timer = setTimeout(() => {
      void list(text, ended.signal)
        .catch(() => [])
        .then((choices) => {
          if (!ended.signal.aborted) latest.current(choices);
        });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [text, isOpen]);
}
