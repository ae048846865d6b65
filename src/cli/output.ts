/** Where commands print. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
}

export const STDIO: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};
