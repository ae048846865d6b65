/** The dashboard as Grafana imports it: its classic JSON model, which sidecars provision and every current Grafana reads. */
import { type Catalogue, readCatalogue } from './catalogue.ts';
import type { Panel, PanelQuery, Row } from './panel.ts';
import { ROWS } from './panels.ts';
import { problemsOf, withMatchers } from './promql.ts';

/** Of Grafana 12; older ones read it too, newer ones convert it. */
const SCHEMA_VERSION = 41;
const UID = 'junction-service-proxy';
const COLUMNS = 24;
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
const SELECTED = 'cluster="$cluster", job="$job", instance=~"$instance"';

interface Variable {
  readonly name: string;
  readonly label: string;
  /** A selector; the values are those of the label of this name. */
  readonly of: string;
  readonly isMulti: boolean;
}

/** The mode chooses among the nodes, so that no query needs it. */
export const VARIABLES: readonly Variable[] = [
  { name: 'cluster', label: 'Cluster', of: 'junction_build_info', isMulti: false },
  { name: 'job', label: 'Job', of: 'junction_build_info{cluster="$cluster"}', isMulti: false },
  { name: 'mode', label: 'Mode', of: 'junction_mode_info{cluster="$cluster", job="$job"}', isMulti: true },
  {
    name: 'instance',
    label: 'Node',
    of: 'junction_mode_info{cluster="$cluster", job="$job", mode=~"$mode"}',
    isMulti: true,
  },
];

export async function dashboardFile(): Promise<string> {
  return `${JSON.stringify(dashboardOf(await readCatalogue(), ROWS), null, 2)}\n`;
}

/** Fails where a query names what does not exist. */
export function dashboardOf(catalogue: Catalogue, rows: readonly Row[]): object {
  return {
    uid: UID,
    title: 'Junction / Service proxy',
    description: 'Made by: node scripts/docs.mjs, from the metrics that Junction has.',
    tags: ['junction', 'kube-proxy'],
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    schemaVersion: SCHEMA_VERSION,
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    annotations: { list: [] },
    links: [],
    templating: { list: [datasourceVariable(), ...VARIABLES.map((each) => queryVariable(catalogue, each))] },
    panels: placed(catalogue, rows),
  };
}

function datasourceVariable(): object {
  return {
    name: 'datasource',
    label: 'Data source',
    type: 'datasource',
    query: 'prometheus',
    hide: 0,
    regex: '',
  };
}

function queryVariable(catalogue: Catalogue, { name, label, of, isMulti }: Variable): object {
  check(catalogue, `count by (${name}) (${of})`, `variable ${name}`);
  const query = `label_values(${of}, ${name})`;
  return {
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    definition: query,
    query: { query, refId: 'StandardVariableQuery' },
    hide: 0,
    includeAll: isMulti,
    multi: isMulti,
    ...(isMulti && { current: { selected: true, text: ['All'], value: ['$__all'] } }),
    // When the time range changes.
    refresh: 2,
    regex: '',
    sort: 1,
  };
}

/** From left to right, in lines as high as their highest panel. */
function placed(catalogue: Catalogue, rows: readonly Row[]): readonly object[] {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y: y++, w: COLUMNS, h: 1 },
      panels: [],
    });
    let x = 0;
    let lineHeight = 0;
    for (const panel of row.panels) {
      const [w, h] = [panel.width ?? 8, panel.kind === 'stat' ? 4 : 8];
      if (x + w > COLUMNS) {
        y += lineHeight;
        [x, lineHeight] = [0, 0];
      }
      panels.push({ id: panels.length + 1, ...panelOf(catalogue, panel), gridPos: { x, y, w, h } });
      x += w;
      lineHeight = Math.max(lineHeight, h);
    }
    y += lineHeight;
  }
  return panels;
}

function panelOf(catalogue: Catalogue, panel: Panel): object {
  const { title, description, kind = 'timeseries', unit, queries } = panel;
  const targets = queries.map((query, index) => target(catalogue, panel, query, index));
  return { type: kind, title, description, datasource: DATASOURCE, targets, ...LOOKS[kind](unit) };
}

function target(catalogue: Catalogue, { title, kind }: Panel, { query, legend }: PanelQuery, index: number) {
  const expr = withMatchers(catalogue, query, SELECTED);
  check(catalogue, expr, `panel ${title}`);
  return {
    refId: String.fromCodePoint(65 + index),
    datasource: DATASOURCE,
    editorMode: 'code',
    expr,
    legendFormat: legend,
    ...(kind === 'table' ? { format: 'table', instant: true, range: false } : { range: true }),
  };
}

function check(catalogue: Catalogue, query: string, where: string): void {
  const problems = problemsOf(catalogue, query);
  if (problems.length > 0) throw new Error(`${where}: ${problems.join('; ')}`);
}

const LOOKS: Readonly<Record<NonNullable<Panel['kind']>, (unit: string) => object>> = {
  timeseries: (unit) => ({
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        color: { mode: 'palette-classic' },
        custom: { drawStyle: 'line', lineWidth: 1, fillOpacity: 10, showPoints: 'never', spanNulls: false },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  }),
  stat: (unit) => ({
    fieldConfig: { defaults: { unit, color: { mode: 'thresholds' } }, overrides: [] },
    options: {
      colorMode: 'value',
      graphMode: 'area',
      justifyMode: 'auto',
      orientation: 'auto',
      textMode: 'value',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
  }),
  table: (unit) => ({
    fieldConfig: { defaults: { unit }, overrides: [] },
    options: { showHeader: true, cellHeight: 'sm' },
    transformations: [{ id: 'organize', options: { excludeByName: { Time: true, Value: true } } }],
  }),
};
