/** Where commands print. */
import { descriptorCalls } from '../kernel/descriptors.ts';
import { type LostLines, LogSink, nonBlockingWriter } from '../logSink.ts';
import { printable } from '../printable.ts';

export interface Output {
  out(text: string): void;
  err(text: string): void;
  /** What is printable already, and has colours. */
  painted(text: string): void;
  /** Writes what waits to be written, for so long at most. */
  flush?(milliseconds: number): void;
  /** Lines for standard error were lost, and now there are none again that wait. */
  onLost?(tell: (lost: LostLines) => void): void;
}

export const STDIO: Output = {
  out: (text) => process.stdout.write(printable(text)),
  err: (text) => process.stderr.write(printable(text)),
  painted: (text) => process.stdout.write(text),
};

/** Those of the program: nothing waits for whoever reads standard error. */
export function programOutput(): Output {
  const sink = new LogSink(nonBlockingWriter(2, descriptorCalls));
  let isFirst = true;
  // Not before it is used: Node makes the pipe non-blocking, for all who share it.
  const beforeOut = (): void => {
    // `junction plan | head` reads no further than it likes.
    if (isFirst) process.stdout.on('error', () => process.exit(1));
    isFirst = false;
  };
  return {
    out: (text) => {
      beforeOut();
      STDIO.out(text);
    },
    err: (text) => sink.write(printable(text)),
    painted: (text) => {
      beforeOut();
      STDIO.painted(text);
    },
    flush: (milliseconds) => sink.flush(milliseconds),
    onLost: (tell) => {
      sink.onLost = tell;
    },
  };
}
