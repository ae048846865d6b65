import { scenariosInLab } from './labTests.ts';

scenariosInLab({ layout: 'current', variant: 'nft', isAsked: true });
