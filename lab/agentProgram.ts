import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Beside a bundle; one folder up from a folder of chunks; where the build puts it, from the sources. */
const PLACES = ['./lab-agent.js', '../lab-agent.js', '../dist/lab-agent.js'];

/** The program that runs in each host of the lab. */
export function agentProgram(): string {
  const files = PLACES.map((path) => fileURLToPath(new URL(path, import.meta.url)));
  const file = files.find((each) => existsSync(each));
  if (file === undefined) throw new Error('The agent of the lab is not built: node scripts/setup.mjs');
  return file;
}
