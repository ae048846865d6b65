/** The sentences about what is pointed at: seen below the diagram, and read aloud. */
import { packetQuestion } from './questions.ts';
import type { Caption } from './captions.ts';
import { packetPath } from '../address.ts';

export function CaptionText({ words, hint }: { readonly words: Caption; readonly hint: string | undefined }) {
  const isMixed = words.lines.some(({ packet }) => packet);
  return (
    <div class="caption" role="status" aria-live="polite">
      <p class="caption-title">
        <strong>{words.title}</strong>
        {words.aside !== undefined && <span class="quiet">{words.aside}</span>}
      </p>
      {words.lines.length > 0 && (
        <dl>
          {words.lines.map(({ label, text, packet }) => (
            <div key={`${label} ${text}`} class={isMixed && !packet ? 'plain' : undefined}>
              <dt>{label}</dt>
              <dd>
                {text}{' '}
                {packet && (
                  <a
                    class="ask"
                    href={packetPath(packetQuestion(packet))}
                    aria-label={`Ask about the packet ${label}`}
                  >
                    packet
                  </a>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {hint !== undefined && <p class="quiet">{hint}</p>}
    </div>
  );
}
