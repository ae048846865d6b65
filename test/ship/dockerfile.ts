/** Reads a Dockerfile: its stages, each with its instructions. Only the instructions that ours has. */
export interface Instruction {
  readonly name: string;
  readonly value: string;
}

export interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

export interface Copy {
  /** The stage it comes from; the checkout when undefined. */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly target: string;
}

export interface Dockerfile {
  readonly arguments: ReadonlyMap<string, string>;
  readonly stages: readonly Stage[];
}

const KNOWN = /^(ARG|FROM|WORKDIR|COPY|RUN|LABEL|ENV|USER|ENTRYPOINT|CMD) +([^]+)$/;

export function parseDockerfile(source: string): Dockerfile {
  const args = new Map<string, string>();
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = [];
  const lines = source
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n');
  for (const line of lines.filter((each) => each.trim() !== '')) {
    const [, name, value] = KNOWN.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`not known here: ${line}`);
    const stage = stages.at(-1);
    if (name === 'FROM') {
      const [, base = '', , as] = /^(\S+)( AS (\S+))?$/.exec(value) ?? [];
      stages.push({ base: substitute(base, args), name: as, instructions: [] });
    } else if (stage) {
      stage.instructions.push({ name, value });
    } else {
      const [key = '', ...rest] = value.split('=');
      args.set(key, rest.join('='));
    }
  }
  return { arguments: args, stages };
}

function substitute(text: string, args: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = args.get(name);
    if (value === undefined) throw new Error(`ARG ${name} is missing`);
    return value;
  });
}

export function valuesOf(stage: Stage, name: string): readonly string[] {
  return stage.instructions.filter((each) => each.name === name).map(({ value }) => value);
}

export function copiesOf(stage: Stage): readonly Copy[] {
  return valuesOf(stage, 'COPY').map((value) => {
    const [, from, rest = ''] = /^(?:--from=(\S+) )?(.*)$/.exec(value) ?? [];
    const paths = rest.split(/ +/);
    return { from, sources: paths.slice(0, -1), target: paths.at(-1) ?? '' };
  });
}
