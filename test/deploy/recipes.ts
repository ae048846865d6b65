/** The blocks of docs/recipes/, each with the line above it that says how it was checked. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readText } from './chart.ts';

export const RECIPES = 'docs/recipes';

/** Of the lines that docs/recipes/README.md explains, those by which tests run a block. */
const MARKS = {
  tests: '*Run by the tests.*',
  testsFromJunction: '*Run by the tests, from `junction` on.*',
} as const;

type Mark = keyof typeof MARKS;

export interface RecipeBlock {
  /** `kubeadm.md` */
  readonly page: string;
  /** Of its first line, for messages. */
  readonly line: number;
  /** Empty: output. */
  readonly language: string;
  readonly text: string;
  readonly mark: Mark | undefined;
}

export function recipeBlocks(page: string): readonly RecipeBlock[] {
  const text = readText(RECIPES, page);
  return [...text.matchAll(/^([^\n]*)\n```(\w*)\n(.*?)^```$/gms)].map(
    ({ index, 1: above = '', 2: language = '', 3: block = '' }) => ({
      page,
      line: text.slice(0, index).split('\n').length + 2,
      language,
      text: block,
      mark: (['tests', 'testsFromJunction'] as const).find((mark) => MARKS[mark] === above),
    }),
  );
}

export const RECIPE_BLOCKS: readonly RecipeBlock[] = readdirSync(join(ROOT, RECIPES))
  .filter((name) => name.endsWith('.md'))
  .flatMap(recipeBlocks);

/** `junction status` of `kubectl … exec … -- junction status`. */
export function junctionCommands({ text }: RecipeBlock): readonly string[] {
  return [...text.replaceAll(/\\\n\s*/g, '').matchAll(/^[^#\n].* -- (junction .*)$/gm)].map(
    ([, inside = '']) => inside,
  );
}
