/** docs/recipes/: every block says how it was checked, and what can be checked without a cluster is. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { PAGES } from '../support/checkout.ts';
import {
  at,
  type Data,
  defaultValues,
  isData,
  merge,
  REQUIRED,
  ROOT,
  readText,
  renderObjects,
} from './chart.ts';
import { helmCommands } from './helmCommands.ts';
import { violations } from './jsonSchema.ts';
import { complaints } from './kubernetes.ts';
import {
  commandsOf,
  junctionCommands,
  RECIPE_BLOCKS,
  RECIPES,
  recipeBlocks,
  recipePages,
  type RecipeBlock,
} from './recipes.ts';

const schema = JSON.parse(readText('deploy/chart/junction/values.schema.json')) as unknown;
const DISTRIBUTIONS = recipePages().filter((page) => page !== 'README.md');

function place({ page, line }: RecipeBlock): string {
  return `${page}:${line}`;
}

describe('every block', () => {
  test('there are some', () => {
    expect(DISTRIBUTIONS.sort()).toEqual(
      ['aks.md', 'eks.md', 'gke.md', 'k3s.md', 'kind.md', 'kubeadm.md', 'static-pod.md', 'systemd.md'].sort(),
    );
    expect(RECIPE_BLOCKS.filter(({ mark }) => mark !== undefined).length).toBeGreaterThan(60);
  });

  test('is found by the reader of pages', () => {
    for (const page of recipePages()) {
      const fences = [...readText(RECIPES, page).matchAll(/^ *```/gm)].length;
      expect([page, recipeBlocks(page).length * 2]).toEqual([page, fences]);
    }
  });

  test('says how it was checked', () => {
    const unmarked = RECIPE_BLOCKS.filter(({ language, mark }) => language !== '' && mark === undefined);
    expect(unmarked.map(place)).toEqual([]);
  });

  test('has a mark that fits what is in it', () => {
    const wrong = RECIPE_BLOCKS.filter((block) => {
      if (block.mark === 'read') return block.language === 'sh';
      if (block.mark === 'rendered')
        return commandsOf(block).some((command) => !/^helm (?:install|upgrade) /.test(command));
      if (block.mark === 'testsFromJunction') return junctionCommands(block).length === 0;
      // There was neither Helm nor a cloud.
      if (block.mark === 'byHand' || block.mark === 'tests')
        return /^(?:helm|az|aws|eksctl|gcloud|kind|docker|k3s|systemctl) /m.test(block.text);
      return false;
    });
    expect(wrong.map(place)).toEqual([]);
  });

  test('with output has a command right before it', () => {
    const shown = RECIPE_BLOCKS.filter(({ language }) => language === '');
    expect(shown.filter(({ above }) => !/^<!-- (?:measured|checked): /.test(above)).map(place)).toEqual([]);
  });
});

describe.each(DISTRIBUTIONS)('%s', (page) => {
  const text = readText(RECIPES, page);

  test('says what to check, how to look, how to go back, and what others do meanwhile', () => {
    const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
    expect(headings).toEqual(
      expect.arrayContaining([
        'Before you begin',
        'Look',
        'Back',
        expect.stringMatching(/^What .* meanwhile$/),
      ]),
    );
  });

  test('goes back in one command', () => {
    const back = text.slice(text.indexOf('\n## Back\n'));
    const [first] = [...back.matchAll(/```sh\n(.*?)```/gs)];
    expect(first?.[1]?.trim().split('\n')).toHaveLength(1);
  });

  test('is in the table of recipes', () => {
    expect(readText(RECIPES, 'README.md')).toContain(`](${page})`);
  });
});

describe('commands of Junction that run in its container', () => {
  const commands = RECIPE_BLOCKS.flatMap((block) =>
    junctionCommands(block).map((command) => [place(block), command] as const),
  );

  test.each(commands)('%s: %s', (_, command) => {
    expect(COMMANDS.map(({ name }): string => name)).toContain(command.split(' ')[1]);
  });
});

describe('commands of Helm', () => {
  const all = PAGES.flatMap(({ path, text }) => helmCommands(text).map((each) => [path, each] as const));

  test('there are some', () => expect(all.length).toBeGreaterThan(12));

  test.each(all)('%s: $command', (_, { chart, verb, keepsValues, values, paths }) => {
    expect(existsSync(join(ROOT, chart, 'Chart.yaml'))).toBe(true);
    expect(paths.filter((path) => !isKnown(path))).toEqual([]);
    expect(verb === 'install' && keepsValues).toBe(false);
    const whole = keepsValues ? merge(REQUIRED, values) : values;
    expect(violations(schema, merge(defaultValues(), whole))).toEqual([]);
    expect(renderObjects(whole).flatMap(complaints)).toEqual([]);
  });
});

/** A value of values.yaml, or one inside a map that is passed on as it is. */
function isKnown(path: string): boolean {
  let inner: unknown = defaultValues();
  for (const key of path.split('.')) {
    if (!isData(inner)) return false;
    if (Object.keys(inner).length === 0) return true;
    if (!(key in inner)) return path.startsWith('config.');
    inner = inner[key];
  }
  return true;
}

describe('files that pages show', () => {
  function fileOf(page: string): unknown {
    const [block, ...others] = recipeBlocks(page).filter(({ mark }) => mark === 'read');
    if (!block || others.length > 0) throw new Error(`${page}: not one file`);
    return parse(block.text) as unknown;
  }

  test('kind: no kube-proxy, and the pods that the chart is told', () => {
    const cluster = fileOf('kind.md');
    expect(at(cluster, 'apiVersion')).toBe('kind.x-k8s.io/v1alpha4');
    expect(at(cluster, 'networking', 'kubeProxyMode')).toBe('none');
    const [install] = helmCommands(readText(RECIPES, 'kind.md'));
    expect(at(install?.values, 'config', 'clusterCIDR')).toBe(at(cluster, 'networking', 'podSubnet'));
    expect(at(install?.values, 'apiServer', 'host')).toBe(`${String(at(cluster, 'name'))}-control-plane`);
  });

  test('AKS: the file of the page is the one that the command writes', () => {
    const file = fileOf('aks.md');
    expect(file).toEqual({ enabled: false });
    const [, written] = /echo '([^']*)' > kube-proxy-off\.json/.exec(readText(RECIPES, 'aks.md')) ?? [];
    expect(JSON.parse(written ?? '')).toEqual(file);
  });

  test('EKS: values that the chart takes', () => {
    const values = fileOf('eks.md') as Data;
    const whole = merge(REQUIRED, values);
    expect(violations(schema, merge(defaultValues(), whole))).toEqual([]);
    const objects = renderObjects(whole);
    expect(objects.flatMap(complaints)).toEqual([]);
    expect(JSON.stringify(objects)).toContain('eks.amazonaws.com/compute-type');
  });
});
