/** What `npm run image -- …` takes. */
import { parseArgs } from 'node:util';
import { Failure } from '../../support/run.mjs';
import { MIRROR } from './debian.mjs';
import { ARCHITECTURES } from './architectures.mjs';

export const HELP = `Builds Junction's container image from Debian's packages and the npm registry, without Docker and without a base image.

Usage:
  npm run image [-- flags]

Writes to release/, for each architecture:
  junction-VERSION-linux-ARCH.oci.tar     the image, for skopeo, podman, ctr and docker load
  junction-VERSION-linux-ARCH.oci/        the same as a folder (OCI image layout)
  junction-VERSION-linux-ARCH.spdx.json   everything that is in it (SPDX 2.3)
  junction-VERSION-linux-ARCH.packages    its Debian packages
  junction-VERSION-linux-ARCH.digest      the digest by which a registry will know it
With --arch all also one image of both, junction-VERSION-linux.oci.tar.

The same commit gives the same bytes, as long as Debian's archive has the packages of deploy/image/. Root is not needed.

Flags:
      --arch ARCH          amd64, arm64 or all (default: this machine's)
      --output FOLDER      where to write it (default: release)
      --mirror URL         where Debian's archives are: URL/debian and URL/debian-security
                           (default: ${MIRROR}; only what Debian has signed is taken)
      --allow-dirty        build with changes that no commit has; the version then ends in -dirty
      --locked             end where the archive no longer has a locked package; otherwise its next version is taken, with
                           a warning
      --no-cache           build every layer again
      --update-packages    write the newest versions of the Debian packages to deploy/image/, and build nothing
  -h, --help               this text

Examples:
  npm run image
  npm run image -- --arch all --output /tmp/images
  npm run image -- --update-packages
`;

const FLAGS = {
  arch: { type: 'string' },
  output: { type: 'string', default: 'release' },
  mirror: { type: 'string', default: MIRROR },
  'allow-dirty': { type: 'boolean', default: false },
  locked: { type: 'boolean', default: false },
  'no-cache': { type: 'boolean', default: false },
  'update-packages': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
};

export function parseOptions(args, machine = process.arch) {
  const { values } = parsed(args);
  if (values.help) return { help: true };
  if (!/^https?:\/\/[^\s/]+(\/\S*)?$/.test(values.mirror))
    throw new Failure(`--mirror ${JSON.stringify(values.mirror)} is no URL; it looks like ${MIRROR}`);
  if (values.output.trim() === '') throw new Failure('--output needs the name of a folder.');
  return {
    help: false,
    // The lock files of all architectures are updated together, unless one is named.
    architectures: architecturesOf(
      values.arch ?? (values['update-packages'] ? 'all' : ownArchitecture(machine)),
    ),
    output: values.output,
    mirror: values.mirror.replace(/\/+$/, ''),
    allowDirty: values['allow-dirty'],
    isLocked: values.locked,
    useCache: !values['no-cache'],
    updatesPackages: values['update-packages'],
  };
}

function parsed(args) {
  try {
    return parseArgs({ args, options: FLAGS });
  } catch (error) {
    throw new Failure(`${error.message}\n\nSee: npm run image -- --help`);
  }
}

function architecturesOf(name) {
  const known = Object.keys(ARCHITECTURES);
  if (name === 'all') return known;
  if (known.includes(name)) return [name];
  const meant = Object.entries(ARCHITECTURES).find(([, node]) => node === name)?.[0];
  throw new Failure(
    `--arch ${JSON.stringify(name)} must be one of ${[...known, 'all'].join(', ')}${meant ? `; ${name} is called ${meant} here` : ''}`,
  );
}

function ownArchitecture(machine) {
  const own = Object.entries(ARCHITECTURES).find(([, node]) => node === machine)?.[0];
  if (own) return own;
  throw new Failure(
    `This machine is ${machine}, for which there is no image. Name one: --arch amd64, arm64 or all`,
  );
}
