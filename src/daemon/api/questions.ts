/** Questions about packets, services and endpoints, as routes of the local API. */
import { explainPackets } from '../../explain/packet.ts';
import { type DestinationQuestion, parseDestination, parseService } from '../../explain/question.ts';
import { endpointRows, serviceRows } from '../../explain/rows.ts';
import { explainService } from '../../explain/service.ts';
import { SERVICE_COLUMNS } from '../../explain/serviceTable.ts';
import type { Subject } from '../../explain/subject.ts';
import { type ObjectKey, objectKey } from '../../model/objects.ts';
import { fits, LABEL } from '../../model/project/names.ts';
import { QuestionGate } from './gate.ts';
import { parseTime } from './past.ts';
import { type ApiRoute, data, listOfItems, type Question, RefusedQuestion, tableOfRows } from './routes.ts';
import type { QuestionTurns } from './turns.ts';

export interface QuestionOptions {
  readonly subject: () => Subject;
  /** As it was then, so far as what is asked for needs it. */
  readonly subjectAt: (time: number, asked: DestinationQuestion) => Subject | Promise<Subject>;
  /** The table of services, line by line. */
  readonly serviceLines: (namespace?: string) => Iterable<string>;
  /** Reads what the kernel has counted, for the rates of this question or the next; nobody waits for it. */
  readonly countConnections: () => void;
  readonly turns: QuestionTurns;
}

export function questionRoutes(options: QuestionOptions): readonly ApiRoute[] {
  const { subject, subjectAt, serviceLines, countConnections, turns } = options;
  const gate = new QuestionGate();
  const answered = (answer: () => Promise<unknown>) =>
    gate.ask(async () => {
      await turns.begin();
      return data(await answer());
    });
  /** As it was `at` that time, where one is given. */
  const subjectFor = (query: URLSearchParams, to: string): Subject | Promise<Subject> => {
    const at = query.get('at');
    return at === null ? subject() : subjectAt(parseTime(at, Date.now()), parseDestination(to));
  };
  return [
    {
      path: '/v1/services',
      parameters: ['namespace', 'format'],
      answer: ({ query }) => {
        const namespace = query.get('namespace') ?? undefined;
        countConnections();
        const pause = (): Promise<void> | undefined => turns.pause();
        if (isTable(query)) return tableOfRows(SERVICE_COLUMNS, serviceLines(namespace), pause);
        return listOfItems(serviceRows(subject(), namespace === undefined ? {} : { namespace }), pause);
      },
    },
    {
      path: '/v1/endpoints/*/*',
      parameters: [],
      answer: ({ names }) => {
        countConnections();
        return answered(() => endpointRows(subject(), serviceNamed(names)));
      },
    },
    {
      path: '/v1/explain',
      parameters: ['from', 'to', 'at'],
      answer: ({ query }) => {
        const [from, to] = [required(query, 'from'), required(query, 'to')];
        return answered(async () => explainPackets(await subjectFor(query, to), { from, to }));
      },
    },
    {
      path: '/v1/explain/*/*',
      parameters: ['port', 'at'],
      answer: ({ names, query }) => {
        const service = serviceNamed(names);
        const port = query.get('port');
        countConnections();
        // The port may have a protocol behind it.
        const question = parseService(port === null ? service : `${service}:${port}`);
        return answered(async () => explainService(await subjectFor(query, `svc/${service}`), question));
      },
    },
  ];
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
