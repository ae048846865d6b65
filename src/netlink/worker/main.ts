import { parentPort, workerData } from 'node:worker_threads';
import type { WorkerSettings } from './protocol.ts';
import { serve } from './serve.ts';

if (!parentPort) throw new Error('this program runs in a worker thread');
serve(parentPort, workerData as WorkerSettings);
