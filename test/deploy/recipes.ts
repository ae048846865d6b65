/** The blocks of docs/recipes/, each with the line above it that says how it was checked. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readText } from './chart.ts';

export const RECIPES = 'docs/recipes';

/** The lines that docs/recipes/README.md explains. */
const MARKS = {
  tests: /^\*Run by the tests\.\*$/,
  testsFromJunction: /^\*Run by the tests, from `junction` on\.\*$/,
  byHand: /^\*Run by hand (?:against Kubernetes|with [^*]+) \d+(?:\.\d+)+\.\*$/,
  rendered: /^\*Rendered by the tests\.\*$/,
  read: /^\*Read by the tests\.\*$/,
  notRun: /^\*Not run: needs [^*]+\.\*$/,
} as const;

export type Mark = keyof typeof MARKS;

export interface RecipeBlock {
  /** `kubeadm.md` */
  readonly page: string;
  /** Of its first line, for messages. */
  readonly line: number;
  /** Empty: output. */
  readonly language: string;
  readonly text: string;
  readonly above: string;
  readonly mark: Mark | undefined;
}

export function recipePages(): readonly string[] {
  return readdirSync(join(ROOT, RECIPES)).filter((name) => name.endsWith('.md'));
}

export function recipeBlocks(page: string): readonly RecipeBlock[] {
  const text = readText(RECIPES, page);
  return [...text.matchAll(/^([^\n]*)\n```(\w*)\n(.*?)^```$/gms)].map(
    ({ index, 1: above = '', 2: language = '', 3: block = '' }) => ({
      page,
      line: text.slice(0, index).split('\n').length + 2,
      language,
      text: block,
      above,
      mark: markOf(above),
    }),
  );
}

export const RECIPE_BLOCKS: readonly RecipeBlock[] = recipePages().flatMap(recipeBlocks);

function markOf(above: string): Mark | undefined {
  return (Object.keys(MARKS) as readonly Mark[]).find((mark) => MARKS[mark].test(above));
}

/** Each with its continued lines, without comments. */
export function commandsOf({ text }: Pick<RecipeBlock, 'text'>): readonly string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/** `junction status` of `kubectl … exec … -- junction status`. */
export function junctionCommands(block: RecipeBlock): readonly string[] {
  return commandsOf(block).flatMap((command) => {
    const [, inside] = / -- (junction .*)$/.exec(command) ?? [];
    return inside === undefined ? [] : [inside];
  });
}
