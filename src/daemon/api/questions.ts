/** Questions about packets, services and endpoints, as routes of the local API. */
import { explainPackets } from '../../explain/packet.ts';
import { parseDestination, parseService } from '../../explain/question.ts';
import { endpointRows, serviceRows } from '../../explain/rows.ts';
import { explainService } from '../../explain/service.ts';
import type { Subject } from '../../explain/subject.ts';
import { type ObjectKey, objectKey } from '../../model/objects.ts';
import { fits, LABEL } from '../../model/project/names.ts';
import { QuestionGate } from './gate.ts';
import { type PastFamily, parseTime, pastSubject } from './past.ts';
import { type ApiRoute, data, listOfItems, type Question, RefusedQuestion } from './routes.ts';
import type { QuestionTurns } from './turns.ts';

interface QuestionOptions {
  readonly subject: () => Subject;
  readonly pastFamilies: () => readonly PastFamily[];
  readonly turns: QuestionTurns;
}

export function questionRoutes({ subject, pastFamilies, turns }: QuestionOptions): readonly ApiRoute[] {
  const gate = new QuestionGate();
  const answered = (answer: () => Promise<unknown>) =>
    gate.ask(async () => {
      await turns.begin();
      return data(await answer());
    });
  /** As it was `at` that time, where one is given. */
  const subjectFor = (query: URLSearchParams, to: string): Subject | Promise<Subject> => {
    const at = query.get('at');
    if (at === null) return subject();
    return pastSubject(subject(), pastFamilies(), parseTime(at, Date.now()), parseDestination(to));
  };
  return [
    {
      path: '/v1/services',
      parameters: ['namespace'],
      answer: ({ query }) => {
        const namespace = query.get('namespace');
        const rows = serviceRows(subject(), namespace === null ? {} : { namespace });
        return listOfItems(rows, () => turns.pause());
      },
    },
    {
      path: '/v1/endpoints/*/*',
      parameters: [],
      answer: ({ names }) => answered(() => endpointRows(subject(), serviceNamed(names))),
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
        // The port may have a protocol behind it.
        const question = parseService(port === null ? service : `${service}:${port}`);
        return answered(async () => explainService(await subjectFor(query, `svc/${service}`), question));
      },
    },
  ];
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
