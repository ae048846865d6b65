/** The lines of the manifests that decide, and where they stand; those of what is pointed at are marked. */
import type { DecidingField, ServiceObjects } from '../../../src/explain/types.ts';
import { groupBy } from '../diagram/groupBy.ts';
import type { Box } from '../diagram/graph.ts';
import { Shown } from '../parts/states.tsx';
import type { Answer } from '../useAnswer.ts';
import { decides } from './serviceDeciding.ts';

interface FieldsProps {
  readonly answer: Answer<ServiceObjects>;
  readonly pointed: Box | undefined;
}

export function ServiceFields({ answer, pointed }: FieldsProps) {
  return (
    <section class="card fields" aria-labelledby="fields-title">
      <h2 id="fields-title">Fields that decide</h2>
      <Shown what="the objects" answer={answer}>
        {({ fields }) =>
          [...groupBy(fields, ({ object }) => object)].map(([object, some]) => (
            <div key={object}>
              <h3 class="object">{object}</h3>
              <ul>
                {some.map((field) => (
                  <Field
                    key={field.field}
                    field={field}
                    isDeciding={pointed !== undefined && decides(field, pointed)}
                  />
                ))}
              </ul>
            </div>
          ))
        }
      </Shown>
    </section>
  );
}

function Field({ field, isDeciding }: { readonly field: DecidingField; readonly isDeciding: boolean }) {
  const { field: name, value, where } = field;
  return (
    <li class={isDeciding ? 'field is-deciding' : 'field'}>
      <code>
        <span class="quiet">{name}:</span> {value}
      </code>
      {where !== undefined && (
        <span class="where-line" title={where}>
          {where.slice(where.lastIndexOf('/') + 1)}
        </span>
      )}
    </li>
  );
}
