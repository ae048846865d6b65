/** Which packet: who sends it, whom it dials, and by which protocol. */
import { useEffect, useState } from 'preact/hooks';
import { type ApiFailure, askJson } from '../api.ts';
import { go } from '../route.ts';
import { Combobox } from './packetCombobox.tsx';
import { destinationChoices, sourceChoices } from './packetCompletion.ts';
import { addressOf, type PacketQuestion, PROTOCOLS, type QuestionField, settled } from './packetQuestion.ts';

/** What cannot be answered, and which field is the reason. */
export interface FieldFailure {
  readonly field: QuestionField;
  readonly failure: ApiFailure;
}

export function PacketForm({
  question,
  failed,
}: {
  readonly question: PacketQuestion;
  readonly failed: FieldFailure | undefined;
}) {
  const [form, setForm] = useState(question);
  const [podRound, setPodRound] = useState(0);
  // Another address: a link, an example, the back button.
  useEffect(() => setForm(question), [addressOf(question)]);
  const set = (field: QuestionField, value: string): void =>
    setForm((before) => ({ ...before, [field]: value }));
  const errorAt = (field: QuestionField): ApiFailure | undefined =>
    failed?.field === field && form[field] === question[field] ? failed.failure : undefined;
  return (
    <form
      class="card packet-form"
      aria-label="Packet"
      onSubmit={(event) => {
        event.preventDefault();
        const asked = settled({ ...form, from: form.from.trim(), to: form.to.trim() });
        setForm(asked);
        go(addressOf(asked));
      }}
    >
      <div class="field-from">
        <Combobox
          name="from"
          label="From"
          placeholder="address, pod/NAMESPACE/NAME, node, outside"
          value={form.from}
          onValue={(value) => set('from', value)}
          list={(text, signal) => sourceChoices(text, (path) => askJson(path, signal))}
          error={errorAt('from')}
          focusRound={podRound}
        />
        <div class="quick" role="group" aria-label="Source classes">
          <button
            type="button"
            aria-pressed={form.from.startsWith('pod/')}
            onClick={() => {
              set('from', 'pod/');
              setPodRound(podRound + 1);
            }}
          >
            pod
          </button>
          {['node', 'outside'].map((source) => (
            <button
              key={source}
              type="button"
              aria-pressed={form.from === source}
              onClick={() => set('from', source)}
            >
              {source}
            </button>
          ))}
        </div>
      </div>
      <Combobox
        name="to"
        label="To"
        placeholder="ADDRESS:PORT or svc/NAMESPACE/NAME:PORT"
        value={form.to}
        onValue={(value) => set('to', value)}
        list={(text, signal) => destinationChoices(text, (path) => askJson(path, signal))}
        error={errorAt('to')}
      />
      <ProtocolField
        protocol={form.protocol}
        isService={form.to.startsWith('s')}
        onProtocol={(protocol) => set('protocol', protocol)}
      />
      <button type="submit" class="primary">
        Explain
      </button>
    </form>
  );
}

/** An address has TCP where nothing else is said, a Service what it has. */
function ProtocolField({
  protocol,
  isService,
  onProtocol,
}: {
  readonly protocol: string;
  readonly isService: boolean;
  readonly onProtocol: (protocol: string) => void;
}) {
  const isListed = (each: string): boolean => each !== 'TCP' || isService || protocol === 'TCP';
  return (
    <div class="form-field">
      <label>
        <span>Protocol</span>
        <select value={protocol} onChange={(event) => onProtocol(event.currentTarget.value)}>
          <option value="">{isService ? "the Service's" : 'TCP'}</option>
          {PROTOCOLS.filter(isListed).map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
