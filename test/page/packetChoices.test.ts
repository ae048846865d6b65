/** The field with a list, key by key. */
import { describe, expect, test } from 'vitest';
import {
  afterEvent,
  type ChoiceEvent,
  type ChoiceState,
  noChoices,
} from '../../page/src/views/packetChoices.ts';

const CHOICES = [
  { value: 'outside', note: '' },
  { value: 'node', note: '' },
  { value: 'pod/', note: '', isPartial: true },
];

function key(name: string, isAlt = false): ChoiceEvent {
  return { kind: 'key', key: name, isAlt };
}

function after(state: ChoiceState, ...events: readonly ChoiceEvent[]): ReturnType<typeof afterEvent> {
  let last = { state, isTaken: false };
  for (const event of events) last = afterEvent(last.state, event);
  return last;
}

const OPEN = after(noChoices(''), { kind: 'typed', text: '' }, { kind: 'listed', choices: CHOICES }).state;

test('typing opens the list, with nothing marked', () => {
  expect(OPEN).toEqual({ text: '', isOpen: true, active: -1, choices: CHOICES });
});

describe('arrows', () => {
  test('go round, through the text itself', () => {
    const seen = [1, 2, 3, 4, 5].map(
      (times) => after(OPEN, ...Array.from({ length: times }, () => key('ArrowDown'))).state.active,
    );
    expect(seen).toEqual([0, 1, 2, -1, 0]);
    expect(after(OPEN, key('ArrowUp')).state.active).toBe(2);
  });

  test('open the list; with Alt without a mark', () => {
    const closed = { ...OPEN, isOpen: false };
    expect(after(closed, key('ArrowDown')).state).toMatchObject({ isOpen: true, active: 0 });
    expect(after(closed, key('ArrowDown', true)).state).toMatchObject({ isOpen: true, active: -1 });
    expect(after(closed, key('ArrowUp')).state).toMatchObject({ isOpen: true, active: 2 });
    expect(after(OPEN, key('ArrowUp', true)).state.isOpen).toBe(false);
  });

  test('do not move the caret', () => expect(after(OPEN, key('ArrowDown')).isTaken).toBe(true));
});

describe('Enter', () => {
  test('takes what is marked, and sends no form', () => {
    const { state, isTaken } = after(OPEN, key('ArrowDown'), key('Enter'));
    expect(state).toMatchObject({ text: 'outside', isOpen: false, active: -1 });
    expect(isTaken).toBe(true);
  });

  test('sends the form where nothing is marked', () => {
    expect(after(OPEN, key('Enter'))).toMatchObject({ isTaken: false, state: { isOpen: false } });
  });

  test('on a beginning keeps the list open', () => {
    expect(after(OPEN, key('ArrowUp'), key('Enter')).state).toMatchObject({ text: 'pod/', isOpen: true });
  });
});

test('Escape closes the list, then empties the field, then is not ours', () => {
  const typed = after(OPEN, { kind: 'typed', text: 'no' }).state;
  const closed = after(typed, key('Escape'));
  expect(closed).toMatchObject({ isTaken: true, state: { isOpen: false, text: 'no' } });
  const empty = after(closed.state, key('Escape'));
  expect(empty).toMatchObject({ isTaken: true, state: { text: '' } });
  expect(after(empty.state, key('Escape')).isTaken).toBe(false);
});

test('Tab takes what is marked and goes on', () => {
  expect(after(OPEN, key('ArrowDown'), key('ArrowDown'), key('Tab'))).toMatchObject({
    isTaken: false,
    state: { text: 'node', isOpen: false },
  });
});

test('a newer list keeps the mark on the same choice', () => {
  const marked = after(OPEN, key('ArrowDown'), key('ArrowDown')).state;
  const [, node, pod] = CHOICES;
  if (!node || !pod) throw new Error('no choices');
  expect(after(marked, { kind: 'listed', choices: [node, pod] }).state.active).toBe(0);
  expect(after(marked, { kind: 'listed', choices: [pod] }).state.active).toBe(-1);
});

test('a click takes a choice; leaving closes the list; a text from elsewhere opens none', () => {
  expect(after(OPEN, { kind: 'chosen', index: 1 }).state).toMatchObject({ text: 'node', isOpen: false });
  expect(after(OPEN, { kind: 'chosen', index: 9 }).state).toEqual(OPEN);
  expect(after(OPEN, { kind: 'left' }).state.isOpen).toBe(false);
  expect(after(OPEN, { kind: 'set', text: 'node' }).state).toMatchObject({ text: 'node', isOpen: false });
});
