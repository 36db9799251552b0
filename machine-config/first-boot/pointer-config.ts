import { resourceOf } from './resources.js';

export interface PointerInputs {
  /** `https://host:port` of the Ignition server, as the machines reach it. */
  readonly server: string;
  readonly pool: string;
  /** PEM: the authorities of the server's certificate. */
  readonly certificateAuthority: string;
  /** The provisioning token, where the server asks for one. */
  readonly token?: string | undefined;
}

/** How the server wants its provisioning token. */
export const TOKEN_SCHEME = 'Bearer';

export function configUrl(server: string, pool: string): string {
  return `${server.replace(/\/+$/u, '')}/config/${encodeURIComponent(pool)}`;
}

/** The small config that a machine is given; it fetches the one of its pool. */
export function pointerConfig({ server, pool, certificateAuthority, token }: PointerInputs): object {
  const httpHeaders = [{ name: 'Authorization', value: `${TOKEN_SCHEME} ${token ?? ''}` }];
  return {
    ignition: {
      version: '3.1.0',
      config: { merge: [{ source: configUrl(server, pool), ...(token === undefined ? {} : { httpHeaders }) }] },
      security: { tls: { certificateAuthorities: [resourceOf(certificateAuthority)] } },
    },
  };
}

/** As `pointerConfig`, for clients that know spec 2 only, which can send no token. */
export function pointerConfig2({ server, pool, certificateAuthority }: Omit<PointerInputs, 'token'>): object {
  const { source } = { source: `data:;base64,${Buffer.from(certificateAuthority).toString('base64')}` };
  return {
    ignition: {
      version: '2.2.0',
      config: { append: [{ source: configUrl(server, pool) }] },
      security: { tls: { certificateAuthorities: [{ source }] } },
    },
  };
}
