import { StringDecoder } from 'node:string_decoder';

/** Not node:readline: that also breaks lines at U+2028, which JSON leaves unescaped. */
export function readLines(stream: NodeJS.ReadableStream, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let parts: string[] = [];
  stream.on('data', (chunk: Buffer) => {
    const pieces = decoder.write(chunk).split('\n');
    const rest = pieces.pop() ?? '';
    for (const piece of pieces) {
      parts.push(piece);
      const line = parts.join('');
      parts = [];
      onLine(line);
    }
    if (rest !== '') parts.push(rest);
  });
}
