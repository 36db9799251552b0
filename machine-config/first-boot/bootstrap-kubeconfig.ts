export interface BootstrapIdentity {
  /** `https://host:port` of the API server, as the nodes reach it. */
  readonly server: string;
  /** PEM: the authorities of the API server. */
  readonly certificateAuthority: string;
  /** `id.secret` of a bootstrap token. */
  readonly token: string;
}

/** With which a kubelet asks for a certificate of its own. */
export function bootstrapKubeconfig({ server, certificateAuthority, token }: BootstrapIdentity): string {
  return `apiVersion: v1
kind: Config
clusters:
  - name: local
    cluster:
      server: ${server}
      certificate-authority-data: ${Buffer.from(certificateAuthority).toString('base64')}
users:
  - name: kubelet-bootstrap
    user:
      token: ${token}
contexts:
  - name: kubelet-bootstrap
    context:
      cluster: local
      user: kubelet-bootstrap
current-context: kubelet-bootstrap
`;
}
