/** There is no such service: what there is instead. */
import { nearest } from '../../../src/text/suggest.ts';
import type { ApiFailure } from '../api.ts';
import { apiPath } from '../api.ts';
import { servicePath } from '../address.ts';
import { useAnswer } from '../useAnswer.ts';

const MOST_NAMES = 12;

export function ServiceMissing({
  service,
  failure,
}: {
  readonly service: string;
  readonly failure: ApiFailure;
}) {
  const [namespace = ''] = service.split('/');
  const answer = useAnswer<readonly string[]>(
    apiPath(['names'], { kind: 'services', prefix: `${namespace}/` }),
  );
  const known = answer.kind === 'here' ? answer.value : [];
  const near = nearest(service, known);
  const names = near === undefined ? known : [near, ...known.filter((name) => name !== near)];
  return (
    <section class="state">
      <h1>{service}</h1>
      <p role="alert">{failure.message}</p>
      {failure.hint !== undefined && <p>{failure.hint}</p>}
      {names.length > 0 && (
        <>
          <h2>In the namespace {namespace}</h2>
          <ul class="names">
            {names.slice(0, MOST_NAMES).map((name) => (
              <li key={name} class={name === near ? 'is-near' : undefined}>
                <a href={servicePath(name)}>{name}</a>
              </li>
            ))}
          </ul>
        </>
      )}
      <p>
        <a href="/services">All services</a>
      </p>
    </section>
  );
}
