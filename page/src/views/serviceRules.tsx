/** What the kernel has for the service's packets, in the order in which they meet it. */
import { useMemo, useState } from 'preact/hooks';
import { countOf, group } from '../../../src/explain/finding.ts';
import { differenceWords, kernelWords } from '../../../src/explain/serviceWords.ts';
import type { ServicePortExplanation } from '../../../src/explain/types.ts';
import { FOREIGN_RULE } from '../../../src/explain/words.ts';
import type { Box } from '../diagram/graph.ts';
import { type Rule, type Stage, serviceStages } from './serviceRuleStages.ts';

interface RulesProps {
  readonly port: ServicePortExplanation;
  readonly pointed: Box | undefined;
  /** The kernel's word is on its way. */
  readonly isWalking: boolean;
}

export function ServiceRules({ port, pointed, isWalking }: RulesProps) {
  const words = kernelWords(port.packets);
  const stages = useMemo(() => serviceStages(port.packets), [port.packets]);
  const more = Math.max(0, ...port.packets.map(({ kernel }) => kernel?.moreOutcomes ?? 0));
  const notes = new Set(port.packets.flatMap(({ kernel }) => kernel?.notes ?? []));
  return (
    <section class="card rules" aria-labelledby="rules-title">
      <div class="card-head">
        <h2 id="rules-title">In the kernel</h2>
        {words && <span class={words.isWrong ? 'badge badge-refused' : 'badge badge-ok'}>{words.text}</span>}
      </div>
      {!words && (
        <p class="quiet" role="status">
          {isWalking
            ? 'Packets are walked through the rules in the kernel…'
            : 'No kernel was asked: this is the plan alone.'}
        </p>
      )}
      <ul class="service-differences">
        {port.packets.flatMap(differenceWords).map((difference) => (
          <li key={difference}>
            <span aria-hidden="true">✗ </span>
            {difference}
          </li>
        ))}
      </ul>
      {[...notes].map((note) => (
        <p key={note} class="quiet">
          note: {note}
        </p>
      ))}
      {more > 0 && (
        <p class="quiet">
          Of packets to many endpoints, the ways to some are shown; those to {group(more)} more have the same
          rules.
        </p>
      )}
      {stages.map((stage) => (
        <StageTable key={`${stage.hook} ${stage.table}`} stage={stage} pointed={pointed} />
      ))}
    </section>
  );
}

function StageTable({ stage, pointed }: { readonly stage: Stage; readonly pointed: Box | undefined }) {
  const { hook, table, rules } = stage;
  return (
    <div class="scroll" role="region" aria-label={`${hook}, ${table}`} tabIndex={0}>
      <table class="rule-table">
        <caption>
          <strong>{hook}</strong> <span class="quiet">{table}</span>
        </caption>
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Chain</th>
            <th scope="col">Rule</th>
            <th scope="col">Packets</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <RuleRow key={rule.key} rule={rule} pointed={pointed} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Elements of a long list that are shown at first. */
const FEW = 6;

function RuleRow({ rule, pointed }: { readonly rule: Rule; readonly pointed: Box | undefined }) {
  const { chain, rule: text, packets, elements, isForeign } = rule;
  const [isWhole, setIsWhole] = useState(false);
  const isMet = (by: ReadonlySet<number>): boolean =>
    pointed?.packets.some((packet) => by.has(packet)) ?? false;
  const shown = isWhole ? elements : elements.slice(0, FEW);
  return (
    <>
      <tr class={isMet(rule.by) ? 'is-met' : undefined}>
        <td class="chain">
          <code>{chain}</code>
        </td>
        <td>
          <code>{text}</code>
          {isForeign && <span class="badge badge-refused">{FOREIGN_RULE}</span>}
        </td>
        <td class="number">{packets === undefined ? '' : countOf(packets, 'packet')}</td>
      </tr>
      {shown.map((element) => (
        <tr key={element.text} class={isMet(element.by) ? 'element is-met' : 'element'}>
          <td />
          <td>
            <code>{element.text}</code>
          </td>
          <td class="number">{element.packets === undefined ? '' : countOf(element.packets, 'packet')}</td>
        </tr>
      ))}
      {elements.length > shown.length && (
        <tr class="element">
          <td />
          <td colSpan={2}>
            <button type="button" class="link" onClick={() => setIsWhole(true)}>
              and {group(elements.length - shown.length)} more
            </button>
          </td>
        </tr>
      )}
    </>
  );
}
