import { field } from '../entry.ts';
import { STRING_LIST } from '../listKinds.ts';
import { STRING } from '../scalarKinds.ts';

export const LOCAL_TRAFFIC = {
  title: 'Local traffic and node ports',
  fields: [
    field('detectLocalMode', STRING, {
      default: '',
      flag: { name: 'detect-local-mode' },
      choices: ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'],
      reload: 'live',
      help: 'how to tell traffic of pods from other traffic; empty means ClusterCIDR',
    }),
    field('detectLocal.bridgeInterface', STRING, {
      default: '',
      flag: { name: 'pod-bridge-interface', placeholder: 'NAME' },
      reload: 'live',
      help: 'the bridge that pods hang on, for BridgeInterface',
    }),
    field('detectLocal.interfaceNamePrefix', STRING, {
      default: '',
      flag: { name: 'pod-interface-name-prefix', placeholder: 'PREFIX' },
      reload: 'live',
      help: "what the names of pods' interfaces begin with, for InterfaceNamePrefix",
    }),
    field('clusterCIDR', STRING, {
      default: '',
      flag: { name: 'cluster-cidr', placeholder: 'CIDR[,CIDR]' },
      reload: 'live',
      help: 'addresses of pods, for ClusterCIDR: one CIDR, or one of each family',
    }),
    field('nodePortAddresses', STRING_LIST, {
      default: null,
      flag: { name: 'nodeport-addresses', placeholder: 'CIDR,…|primary' },
      reload: 'live',
      help: "where node ports answer: on addresses in these ranges, or on the node's primary ones; unset means everywhere, and in the nftables mode primary",
    }),
  ],
  flags: [],
} as const;
