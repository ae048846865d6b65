/** Lines that the user types: on this terminal, or on the host's where the demo runs in a guest. */
import { createInterface } from 'node:readline';
import { GUEST_INPUT } from '../guest/machine.ts';
import { lineByLine, Tail } from '../guest/tail.ts';
import { isInGuest, surroundingTerminal } from './inside.ts';

export function hasKeyboard(): boolean {
  return isInGuest() ? surroundingTerminal().hasKeyboard : process.stdin.isTTY;
}

/** Returns how to stop. */
export function readKeyboard(onLine: (line: string) => void): () => void {
  if (!hasKeyboard()) return () => {};
  if (isInGuest()) {
    const tail = new Tail(GUEST_INPUT, lineByLine(onLine));
    return () => tail.stop();
  }
  const lines = createInterface(process.stdin);
  lines.on('line', onLine);
  return () => lines.close();
}
