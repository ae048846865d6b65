/** The lines of the manifests that decide, and where they stand; those of what is pointed at are marked. */
import { useState } from 'preact/hooks';
import { countOf } from '../../../src/explain/finding.ts';
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
        {({ fields }) => <Objects fields={fields} pointed={pointed} />}
      </Shown>
    </section>
  );
}

/** A service may have many EndpointSlices, which mostly say the same, with many endpoints. */
const FEW = 3;
const FEW_FIELDS = 12;

function Objects({
  fields,
  pointed,
}: {
  readonly fields: readonly DecidingField[];
  readonly pointed: Box | undefined;
}) {
  const [isWhole, setIsWhole] = useState(false);
  const objects = [...groupBy(fields, ({ object }) => object)];
  const shown = isWhole ? objects : objects.slice(0, FEW);
  const seen = shown.reduce((sum, [, some]) => sum + Math.min(some.length, FEW_FIELDS), 0);
  const hidden = isWhole ? 0 : fields.length - seen;
  return (
    <>
      {shown.map(([object, some]) => (
        <div key={object}>
          <h3 class="object">{object}</h3>
          <ul>
            {(isWhole ? some : some.slice(0, FEW_FIELDS)).map((field) => (
              <Field
                key={field.field}
                field={field}
                isDeciding={pointed !== undefined && decides(field, pointed)}
              />
            ))}
          </ul>
        </div>
      ))}
      {hidden > 0 && (
        <button type="button" class="link" onClick={() => setIsWhole(true)}>
          and {countOf(hidden, 'more field')}
        </button>
      )}
    </>
  );
}

function Field({ field, isDeciding }: { readonly field: DecidingField; readonly isDeciding: boolean }) {
  const { field: name, value, where } = field;
  return (
    <li class={isDeciding ? 'deciding-field is-deciding' : 'deciding-field'}>
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
