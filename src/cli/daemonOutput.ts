/** Where the proxy prints. */
import { LogBuffer, LogSink, nonBlockingWriter } from '../log/sink.ts';
import { descriptorCalls } from '../system/libc.ts';
import { printable } from '../text/printable.ts';
import { CountedStream, type Output } from './output.ts';

/** Of the proxy: nothing waits for the reader of standard error, or of the log on standard output. */
export function daemonOutput(): Output {
  const sink = new LogSink(nonBlockingWriter(2, descriptorCalls));
  let infoSink: LogSink | undefined;
  let infoBuffer: LogBuffer | undefined;
  // Not before it is used: Node makes the pipe non-blocking, for all who share it.
  let stdout: CountedStream | undefined;
  const out = (text: string): void => {
    stdout ??= new CountedStream('standard output', process.stdout);
    stdout.write(text);
  };
  return {
    out: (text) => out(printable(text)),
    err: (text) => sink.write(printable(text)),
    painted: out,
    flush: (milliseconds) => {
      sink.flush(milliseconds);
      infoBuffer?.close();
      infoSink?.flush(milliseconds);
    },
    logToStdout: (buffer) => {
      const own = new LogSink(nonBlockingWriter(1, descriptorCalls));
      infoSink = own;
      if (buffer === undefined) return (line) => own.write(line);
      const held = new LogBuffer((lines) => own.write(lines), buffer.bytes, buffer.flushMs);
      infoBuffer = held;
      return (line) => held.write(line);
    },
    finished: async () => (await stdout?.finished()) ?? [],
    onLost: (report) => {
      sink.onLost = report;
      if (infoSink) infoSink.onLost = report;
    },
  };
}
