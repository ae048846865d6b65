import type { ServiceRow } from '../../../src/explain/types.ts';
import { Badge } from '../parts/badge.tsx';
import { Shown } from '../parts/states.tsx';
import { servicePath } from '../route.ts';
import { useAnswer } from '../useAnswer.ts';

export function ServicesView({ query }: { readonly query: URLSearchParams }) {
  const answer = useAnswer<readonly ServiceRow[]>('/v1/services', ({ kind }) => kind === 'change');
  return (
    <>
      <h1>Services {query.get('search')}</h1>
      <Shown what="services" answer={answer}>
        {(rows) => (
          <ul>
            {rows.slice(0, 200).map(({ service, state }) => (
              <li key={service}>
                <a href={servicePath(service)}>{service}</a> <Badge state={state} />
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </>
  );
}
