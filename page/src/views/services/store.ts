import { askJson } from '../../api.ts';
import { live } from '../../live.ts';
import { mayPass } from '../../useAnswer.ts';
import { loadLines } from './loadLines.ts';
import { ServiceStore } from './serviceStore.ts';

export const serviceStore = new ServiceStore({
  load: (signal, onFirst) => live.opened().then(() => loadLines(signal, onFirst)),
  ask: (question) => askJson(question),
  subscribe: (listener) => live.subscribe(listener),
  mayPass,
  now: () => Date.now(),
});
