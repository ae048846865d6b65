/** A program `kubectl` that answers `exec` as the real one does: with the command's output and exit code, or with its own error. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PROGRAM = `#!/bin/sh
dir=\${0%/*}
words=$(printf '%s\\037' "$@")
printf '%s\\n' "$words" >>"$dir/calls"
while [ "$1" != exec ]; do shift; done
# exec --namespace NAMESPACE POD
if [ -e "$dir/$4.sh" ]; then . "$dir/$4.sh"; else . "$dir/any.sh"; fi
`;

export interface KubectlAnswer {
  readonly stdout?: readonly (string | Buffer)[];
  readonly stderr?: string;
  readonly exitCode?: number;
  /** What kubectl says where it cannot run the command, or has lost it. */
  readonly fails?: string;
  readonly hangs?: boolean;
  /** Shell that runs before anything is printed. */
  readonly first?: string;
}

export interface KubectlCall {
  /** Before `exec`. */
  readonly flags: readonly string[];
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
}

export class FakeKubectl {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = mkdtempSync(join(directory, 'kubectl-'));
    writeFileSync(join(this.#directory, 'kubectl'), PROGRAM);
    chmodSync(join(this.#directory, 'kubectl'), 0o755);
    this.answer({});
  }

  /** For `PATH`. */
  get path(): string {
    return `${this.#directory}:${process.env['PATH'] ?? ''}`;
  }

  answer(
    { stdout = [], stderr = '', exitCode = 0, fails, hangs, first = '' }: KubectlAnswer,
    pod = 'any',
  ): void {
    const pieces = stdout.map((piece, index) => this.#file(`${pod}.${index}`, piece));
    const lines = [
      first,
      ...pieces.map((path) => `cat '${path}'`),
      `cat '${this.#file(`${pod}.err`, stderr)}' >&2`,
      ...(hangs === true ? ['exec sleep 1000'] : []),
      ...(fails === undefined ? [] : [`cat '${this.#file(`${pod}.fails`, `${fails}\n`)}' >&2`, 'exit 1']),
      ...(exitCode === 0 ? [] : [`echo 'command terminated with exit code ${exitCode}' >&2`]),
      `exit ${exitCode}`,
    ];
    this.#file(`${pod}.sh`, lines.join('\n'));
  }

  calls(): readonly KubectlCall[] {
    const path = join(this.#directory, 'calls');
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8').split('\n').slice(0, -1).map(readCall);
  }

  #file(name: string, content: string | Buffer): string {
    const path = join(this.#directory, name);
    writeFileSync(path, content);
    return path;
  }
}

function readCall(line: string): KubectlCall {
  const words = line.split('\u001f').slice(0, -1);
  const start = words.indexOf('exec');
  const [, flag, namespace = '', pod = '', containerFlag, container = '', end, ...command] =
    words.slice(start);
  if (flag !== '--namespace' || containerFlag !== '--container' || end !== '--')
    throw new Error(`kubectl was called in another way: ${words.join(' ')}`);
  return { flags: words.slice(0, start), namespace, pod, container, command };
}
