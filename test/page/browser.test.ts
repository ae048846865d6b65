/** The page in Chromium, as `junction ui` serves it beside a running proxy: one browser and one demo for all of it. */
import { describe } from 'vitest';
import { useInLab } from '../e2e/support/use.ts';
import { useLab } from '../lab/requireLab.ts';
import { hostile } from './browser/hostile.ts';
import { live } from './browser/live.ts';
import { packet } from './browser/packet.ts';
import { pictures } from './browser/pictures.ts';
import { service } from './browser/service.ts';
import { Demo } from './browser/support/demo.ts';
import { useBrowser } from './browser/support/use.ts';
import { views } from './browser/views.ts';

describe('the page', () => {
  const lab = useLab();
  const stage = useBrowser(useInLab(() => Demo.start(lab())));
  describe('views', () => {
    views(stage);
  });
  describe('a service', () => {
    service(stage);
  });
  describe('a packet', () => {
    packet(stage);
  });
  describe('what is hostile', () => {
    hostile(stage);
  });
  // The last: it ends the proxy, and starts it in another mode.
  describe('what happens', () => {
    live(stage);
  });
  pictures(stage);
});
