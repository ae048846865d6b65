/** An API server that keeps events, and answers as it is told to. */
import type { EventBody } from '../../../src/telemetry/events/event.ts';
import type { EventRequest, SendEvent } from '../../../src/telemetry/events/sender.ts';

type Answer = number | 'hang' | 'refuse';

export class FakeApi {
  /** `POST Starting`, `PATCH count=3` */
  readonly requests: string[] = [];
  readonly bodies: unknown[] = [];
  readonly events = new Map<string, EventBody>();
  /** Taken one by one; when none is left, requests succeed. */
  readonly answers: Answer[] = [];
  aborted = 0;

  readonly send: SendEvent = (request, signal) => {
    this.requests.push(describe(request));
    this.bodies.push(request.body);
    const answer = this.answers.shift() ?? this.#act(request);
    if (answer === 'refuse') return Promise.reject(new Error('connect ECONNREFUSED'));
    if (answer !== 'hang') return Promise.resolve({ status: answer });
    return new Promise(() => {
      signal.addEventListener('abort', () => {
        this.aborted += 1;
      });
    });
  };

  #act({ method, path, body }: EventRequest): number {
    if (method === 'POST') {
      const event = body as EventBody;
      const key = `${path}/${event.metadata.name}`;
      if (this.events.has(key)) return 409;
      this.events.set(key, event);
      return 201;
    }
    const event = this.events.get(path);
    if (!event) return 404;
    this.events.set(path, { ...event, ...(body as Partial<EventBody>) });
    return 200;
  }
}

function describe({ method, body }: EventRequest): string {
  const { reason, series } = body as Partial<EventBody>;
  return [method, reason, series && `count=${series.count}`].filter(Boolean).join(' ');
}
