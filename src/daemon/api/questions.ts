/** Questions about packets, services and endpoints, as routes. They need a subject and no daemon: `junction ui` answers them too. */
import { serviceObjects } from '../../explain/objects.ts';
import { explainPackets } from '../../explain/packet.ts';
import { parseService } from '../../explain/question.ts';
import { endpointRows, rowsOf, serviceRows } from '../../explain/rows.ts';
import { explainService } from '../../explain/service.ts';
import { SERVICE_COLUMNS, serviceLines } from '../../explain/serviceTable.ts';
import type { Subject } from '../../explain/subject.ts';
import { type ObjectKey, objectKey } from '../../model/objects.ts';
import { fits, LABEL } from '../../model/project/names.ts';
import { QuestionGate } from './gate.ts';
import { namesOf } from './names.ts';
import { type ApiRoute, data, listOfItems, type Question, RefusedQuestion, tableOfRows } from './routes.ts';
import type { QuestionTurns } from './turns.ts';

export interface QuestionOptions {
  /** As it is now. */
  readonly subject: () => Subject;
  /** Reads what the kernel has counted, where that is old. */
  readonly countConnections?: (() => Promise<void>) | undefined;
  readonly turns: QuestionTurns;
}

/** Rows for what a browser shows of a table, in one question. */
const MOST_ASKED = 200;

export function questionRoutes(options: QuestionOptions): readonly ApiRoute[] {
  const { subject, turns } = options;
  const gate = new QuestionGate();
  const answered = (answer: () => Promise<unknown>) =>
    gate.ask(async () => {
      await turns.begin();
      return data(await answer());
    });
  const pause = (): Promise<void> | undefined => turns.pause();
  return [
    {
      path: '/v1/services',
      parameters: ['namespace', 'service', 'format'],
      answer: ({ query }) => {
        const namespace = query.get('namespace') ?? undefined;
        const services = servicesNamed(query);
        if (isTable(query)) return tableOfRows(SERVICE_COLUMNS, serviceLines(subject(), namespace), pause);
        if (services) return listOfItems(rowsOf(subject(), services), pause);
        return listOfItems(serviceRows(subject(), namespace === undefined ? {} : { namespace }), pause);
      },
    },
    {
      path: '/v1/endpoints/*/*',
      parameters: [],
      answer: ({ names }) => {
        const service = serviceNamed(names);
        return answered(async () => {
          await options.countConnections?.();
          return endpointRows(subject(), service);
        });
      },
    },
    {
      path: '/v1/objects/*/*',
      parameters: [],
      answer: ({ names }) => answered(() => serviceObjects(subject(), serviceNamed(names))),
    },
    {
      path: '/v1/explain',
      parameters: ['from', 'to'],
      answer: ({ query }) => {
        const [from, to] = [required(query, 'from'), required(query, 'to')];
        return answered(async () => explainPackets(subject(), { from, to }));
      },
    },
    {
      path: '/v1/explain/*/*',
      parameters: ['port', 'kernel'],
      answer: ({ names, query }) => {
        const service = serviceNamed(names);
        const port = query.get('port');
        const isPlanAlone = asksPlanAlone(query);
        // Nobody waits for it here: walks through the kernel's rules take long enough.
        void options.countConnections?.();
        // The port may have a protocol behind it.
        const question = parseService(port === null ? service : `${service}:${port}`);
        return answered(async () => {
          const found = subject();
          return explainService(isPlanAlone ? withoutKernel(found) : found, question);
        });
      },
    },
    {
      path: '/v1/names',
      parameters: ['kind', 'prefix', 'namespace', 'service', 'endpoint'],
      answer: ({ query }) => answered(() => namesOf(subject(), query)),
    },
  ];
}

/** `kernel=none`: the walks of packets to hundreds of endpoints take most of the time of an answer. */
function asksPlanAlone(query: URLSearchParams): boolean {
  const kernel = query.get('kernel');
  if (kernel === null || kernel === 'none') return kernel !== null;
  throw new RefusedQuestion(400, 'parameter', 'kernel must be none');
}

function withoutKernel(subject: Subject): Subject {
  const families = subject.families.map((own) => ({
    family: own.family,
    plan: own.plan,
    host: own.host,
    refused: own.refused,
    portsOf: (service: ObjectKey) => own.portsOf(service),
    slicesOf: (service: ObjectKey) => own.slicesOf(service),
    services: () => own.services(),
  }));
  return { ...subject, families };
}

function isTable(query: URLSearchParams): boolean {
  const format = query.get('format') ?? 'json';
  if (format === 'json' || format === 'table') return format === 'table';
  throw new RefusedQuestion(400, 'parameter', 'format must be json or table');
}

function required(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (value !== null) return value;
  throw new RefusedQuestion(400, 'parameter', `the parameter "${name}" is missing`);
}

function serviceNamed([namespace = '', name = '']: Question['names']): ObjectKey {
  if (fits(LABEL, namespace) && fits(LABEL, name)) return objectKey(namespace, name);
  throw new RefusedQuestion(400, 'name', 'this is not the name of a Service', 'Say NAMESPACE/NAME.');
}

/** `undefined`: all are asked for. */
function servicesNamed(query: URLSearchParams): readonly ObjectKey[] | undefined {
  const names = new Set(query.getAll('service'));
  if (names.size === 0) return undefined;
  if (query.has('namespace') || query.has('format'))
    throw new RefusedQuestion(400, 'parameter', 'service goes with no other parameter');
  if (names.size > MOST_ASKED)
    throw new RefusedQuestion(
      400,
      'parameter',
      `${names.size} services are asked for, of at most ${MOST_ASKED}`,
    );
  return [...names];
}
