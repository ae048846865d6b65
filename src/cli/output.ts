import { printable } from '../printable.ts';

/** Where commands print. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
  /** What is printable already, and has colours. */
  painted(text: string): void;
}

export const STDIO: Output = {
  out: (text) => process.stdout.write(printable(text)),
  err: (text) => process.stderr.write(printable(text)),
  painted: (text) => process.stdout.write(text),
};
