/**
 * A real Prometheus scrapes two running Junctions, one in nftables and one in iptables mode, while things happen to them:
 * every query of the dashboard and every alert evaluates to data.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { ALERTS, expressionOf } from '../../scripts/monitoring/alerts.ts';
import { type Catalogue, readCatalogue } from '../../scripts/monitoring/catalogue.ts';
import { withMatchers } from '../../scripts/monitoring/promql.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { useInLab } from '../e2e/support/use.ts';
import { useLab } from '../lab/requireLab.ts';
import { at, isData, listAt, readText, ROOT } from './chart.ts';
import { NO_DATA } from './prometheus/noData.ts';
import { Prometheus, type Sample } from './prometheus/server.ts';
import { findTool, requireTool } from './prometheus/tools.ts';
import { TwoNodes } from './prometheus/twoNodes.ts';

const RULES = `${ROOT}/deploy/monitoring/junction-rules.yaml`;
const DASHBOARD: unknown = JSON.parse(readText('deploy/monitoring/junction-dashboard.json'));
const JOB = 'job="kube-proxy"';
const TARGETS = [
  { address: '127.0.0.1:10249', labels: { instance: 'node1', cluster: 'lab' } },
  { address: '192.168.100.3:10249', labels: { instance: 'node2', cluster: 'lab' } },
];

interface Asked {
  readonly of: string;
  readonly query: string;
}

/** As Grafana sends it with everything selected; a rate is of the whole test. */
function filledIn(query: string): string {
  const values = { cluster: 'lab', job: 'kube-proxy', instance: 'node1|node2', mode: 'iptables|nftables' };
  const filled = Object.entries(values).reduce(
    (text, [name, value]) => text.replaceAll(`$${name}`, value),
    query,
  );
  return filled.replaceAll('$__rate_interval', '10m');
}

const PANELS: readonly Asked[] = listAt(DASHBOARD, 'panels').flatMap((panel) =>
  (isData(panel) && Array.isArray(panel['targets']) ? (panel['targets'] as readonly unknown[]) : []).map(
    (target) => ({ of: String(at(panel, 'title')), query: filledIn(String(at(target, 'expr'))) }),
  ),
);

/** `label_values(SELECTOR, LABEL)`, as a query. */
const VARIABLES: readonly Asked[] = listAt(DASHBOARD, 'templating', 'list')
  .filter((variable) => at(variable, 'type') === 'query')
  .map((variable) => {
    const [, selector = '', label = ''] =
      /^label_values\((.*), (\w+)\)$/.exec(String(at(variable, 'definition'))) ?? [];
    return { of: label, query: filledIn(`count by (${label}) (${selector})`) };
  });

function isExcepted({ query }: Asked): boolean {
  return NO_DATA.some(({ series }) => query.includes(series));
}

function hasData(samples: readonly Sample[]): boolean {
  return samples.some(({ value }) => !Number.isNaN(value));
}

describe('Prometheus', () => {
  const lab = useLab();
  const prometheus = useInLab(async () => {
    const program = findTool('prometheus');
    // Each test says so.
    if (program === undefined) return { ask: undefined, close: async () => {} };
    return Prometheus.start(lab().host('node1'), { program, targets: TARGETS, ruleFile: RULES });
  });
  const nodes = useInLab(() => TwoNodes.create(lab()));
  const catalogue = readCatalogue();
  /** What a test did not reach, those after it would wait for in vain. */
  let isReached = false;
  beforeEach((context) => void requireTool('prometheus', context));

  function server(): Prometheus {
    const made = prometheus();
    if (!(made instanceof Prometheus)) throw new Error('there is no Prometheus');
    return made;
  }

  /** Those without data now. */
  async function without(asked: readonly Asked[]): Promise<readonly Asked[]> {
    const answers = await server().ask(asked.map(({ query }) => query));
    return asked.filter((_, index) => !hasData(answers[index] ?? []));
  }

  /** Changes are made until all have data: quantiles are of what happened between two scrapes. */
  async function allHaveData(asked: readonly Asked[]): Promise<void> {
    expect(isReached).toBe(true);
    let left: readonly Asked[] = asked.filter((each) => !isExcepted(each));
    await eventually(
      () => `data for:\n${left.map(({ of, query }) => `${of}: ${query}`).join('\n')}`,
      async () => {
        left = await without(left);
        if (left.length === 0) return true;
        await nodes().change();
        return false;
      },
    );
  }

  async function alertQueries(): Promise<readonly Asked[]> {
    const known: Catalogue = await catalogue;
    return ALERTS.filter(({ name }) => name !== 'JunctionAbsent').map(({ name, value }) => ({
      of: name,
      query: withMatchers(known, value, JOB),
    }));
  }

  async function holds(name: string): Promise<boolean> {
    const alert = ALERTS.find((each) => each.name === name);
    if (!alert) throw new Error(`no alert ${name}`);
    const [samples = []] = await server().ask([withMatchers(await catalogue, expressionOf(alert), JOB)]);
    return samples.length > 0;
  }

  test('scrapes both while changes, repairs, failures and lost connections happen', async () => {
    await nodes().start();
    await nodes().askForHealth();
    await nodes().interfere();
    await nodes().change();
    await nodes().loseServer();
    await nodes().change();
    const [modes = []] = await server().ask([`junction_mode_info{${JOB}} and on (instance) up == 1`]);
    const seen = modes.map(({ metric }) => `${metric['instance']} ${metric['mode']}`).sort();
    expect(seen).toEqual(['node1 nftables', 'node2 iptables']);
    isReached = true;
  });

  test('has loaded every alert, and evaluates it without an error', async () => {
    let rules: readonly unknown[] = [];
    await eventually('all are evaluated', async () => {
      const groups = listAt(await server().get('/api/v1/rules'), 'data', 'groups');
      rules = groups.flatMap((group) => listAt(group, 'rules'));
      return rules.every((rule) => at(rule, 'health') !== 'unknown');
    });
    expect(rules.map((rule) => `${String(at(rule, 'name'))} ${String(at(rule, 'health'))}`)).toEqual(
      ALERTS.map(({ name }) => `${name} ok`),
    );
  });

  test('has data for every panel and variable', async () => {
    expect(PANELS.length).toBeGreaterThan(70);
    expect(VARIABLES.map(({ of }) => of)).toEqual(['cluster', 'job', 'mode', 'instance']);
    await allHaveData([...PANELS, ...VARIABLES]);
  });

  test('has data for what every alert measures', async () => {
    const asked = await alertQueries();
    expect(asked).toHaveLength(ALERTS.length - 1);
    await allHaveData(asked);
  });

  test('has no data where the list says so', async () => {
    const all = [...PANELS, ...(await alertQueries())];
    for (const { series, dependsOnKernel = false } of NO_DATA) {
      const asked = all.filter(({ query }) => query.includes(series));
      expect([series, asked.length]).not.toEqual([series, 0]);
      if (!dependsOnKernel) expect([series, await without(asked)]).toEqual([series, asked]);
    }
  });

  test('no alert holds about Junctions that are well', async () => {
    expect(isReached).toBe(true);
    const steady = [
      'Absent',
      'Down',
      'NeverSynced',
      'Behind',
      'RulesRefused',
      'ApiResourceDown',
      'VersionsDiffer',
    ];
    for (const name of steady.map((each) => `Junction${each}`))
      await eventually(`${name} does not hold`, async () => !(await holds(name)));
  });

  test('when they end, the alerts about that hold', async () => {
    expect(isReached).toBe(true);
    await nodes().kill();
    for (const name of ['JunctionDown', 'JunctionAbsent'])
      await eventually(`${name} holds`, () => holds(name));
  });
});
