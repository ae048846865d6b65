/**
 * What a text field with a list below it does, key by key: the combobox with a listbox of the ARIA Authoring Practices,
 * whose text is free and whose list helps.
 */
export interface NameChoice {
  readonly value: string;
  readonly note: string;
  /** More is to be typed behind it: the list stays open. */
  readonly isPartial?: boolean;
}

export interface ChoiceState {
  readonly text: string;
  readonly isOpen: boolean;
  /** Of the list; -1: the text itself. */
  readonly active: number;
  readonly choices: readonly NameChoice[];
}

export type ChoiceEvent =
  | { readonly kind: 'typed' | 'set'; readonly text: string }
  | { readonly kind: 'listed'; readonly choices: readonly NameChoice[] }
  | { readonly kind: 'chosen'; readonly index: number }
  | { readonly kind: 'key'; readonly key: string; readonly isAlt: boolean }
  | { readonly kind: 'left' };

export function noChoices(text: string): ChoiceState {
  return { text, isOpen: false, active: -1, choices: [] };
}

/** `isTaken`: the key is used up, and no form is to be sent for it. */
export function afterEvent(
  state: ChoiceState,
  event: ChoiceEvent,
): { readonly state: ChoiceState; readonly isTaken: boolean } {
  switch (event.kind) {
    case 'typed':
      return untaken({ ...state, text: event.text, isOpen: true, active: -1 });
    case 'set':
      return untaken({ ...noChoices(event.text), choices: state.choices });
    case 'listed': {
      // What was active stays so where it is still there.
      const before = state.choices[state.active]?.value;
      const active = event.choices.findIndex(({ value }) => value === before);
      return untaken({ ...state, choices: event.choices, active: before === undefined ? -1 : active });
    }
    case 'chosen':
      return taken(chosen(state, event.index));
    case 'left':
      return untaken({ ...state, isOpen: false, active: -1 });
    case 'key':
      return afterKey(state, event.key, event.isAlt);
  }
}

function afterKey(state: ChoiceState, key: string, isAlt: boolean): ReturnType<typeof afterEvent> {
  const { isOpen, active, choices } = state;
  const last = choices.length - 1;
  switch (key) {
    case 'ArrowDown':
      if (!isOpen) return taken({ ...state, isOpen: true, active: isAlt || last < 0 ? -1 : 0 });
      return taken({ ...state, active: active >= last ? -1 : active + 1 });
    case 'ArrowUp':
      if (isAlt) return taken({ ...state, isOpen: false, active: -1 });
      if (!isOpen) return taken({ ...state, isOpen: true, active: last });
      return taken({ ...state, active: active < 0 ? last : active - 1 });
    case 'Enter':
      return isOpen && active >= 0 ? taken(chosen(state, active)) : untaken({ ...state, isOpen: false });
    case 'Escape':
      if (isOpen) return taken({ ...state, isOpen: false, active: -1 });
      return state.text === '' ? untaken(state) : taken(noChoices(''));
    case 'Tab':
      // As in a shell: what is marked is taken, and the focus goes on.
      return untaken(isOpen && active >= 0 ? { ...chosen(state, active), isOpen: false } : state);
    default:
      return untaken(state);
  }
}

function chosen(state: ChoiceState, index: number): ChoiceState {
  const choice = state.choices[index];
  if (!choice) return state;
  return { ...state, text: choice.value, isOpen: choice.isPartial === true, active: -1 };
}

function taken(state: ChoiceState): ReturnType<typeof afterEvent> {
  return { state, isTaken: true };
}

function untaken(state: ChoiceState): ReturnType<typeof afterEvent> {
  return { state, isTaken: false };
}
