import { rename, writeFile } from 'node:fs/promises';

/** All of it at once: whoever looks at a file while it is being written sees an empty one, and that says something too. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}
