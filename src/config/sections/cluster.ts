import { field, flag } from '../entry.ts';
import { FEATURE_GATES } from '../listKinds.ts';
import { FLOAT, INT, STRING } from '../scalarKinds.ts';

/** Lists are read item by item as they arrive (src/sources/api/jsonItems.ts), for which JSON is enough. */
const JSON_ONLY = 'Junction speaks JSON with the API server, whatever this says';

export const GATES = {
  title: 'Feature gates',
  fields: [
    field('featureGates', FEATURE_GATES, {
      default: {},
      flag: { name: 'feature-gates' },
      omit: 'zero',
      help: 'features to switch on or off by name, such as AllowServiceExternalIPs=false',
    }),
  ],
  flags: [],
} as const;

export const API_SERVER = {
  title: 'API server',
  fields: [
    field('clientConnection.kubeconfig', STRING, {
      default: '',
      flag: { name: 'kubeconfig', placeholder: 'FILE' },
      help: 'kubeconfig file with the address of the API server and the credentials; without it and without --master, those that every pod has',
    }),
    field('clientConnection.acceptContentTypes', STRING, {
      default: '',
      help: 'Accept header of requests, where it should not follow from the content type',
      ignored: JSON_ONLY,
    }),
    field('clientConnection.contentType', STRING, {
      default: 'application/vnd.kubernetes.protobuf',
      flag: { name: 'kube-api-content-type' },
      help: 'content type of requests to the API server',
      ignored: JSON_ONLY,
    }),
    field('clientConnection.qps', FLOAT, {
      default: 5,
      flag: { name: 'kube-api-qps' },
      help: 'requests per second to the API server, on average',
    }),
    field('clientConnection.burst', INT, {
      default: 10,
      flag: { name: 'kube-api-burst' },
      help: 'requests to the API server that may go out at once',
    }),
  ],
  flags: [
    flag('master', STRING, {
      default: '',
      placeholder: 'URL',
      help: 'address of the API server; wins over the one in the kubeconfig file',
      worksWithFile: true,
    }),
  ],
} as const;
