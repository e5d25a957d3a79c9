/** The part of noVNC that the console uses; the package has no types. */
declare module "@novnc/novnc" {
  interface RfbEvents {
    connect: CustomEvent<Record<string, never>>;
    disconnect: CustomEvent<{ clean: boolean }>;
    securityfailure: CustomEvent<{ status: number; reason?: string }>;
    credentialsrequired: CustomEvent<{ types: string[] }>;
    clipboard: CustomEvent<{ text: string }>;
    desktopname: CustomEvent<{ name: string }>;
  }

  export default class RFB {
    constructor(target: HTMLElement, channel: WebSocket | string, options?: { shared?: boolean });
    background: string;
    clipViewport: boolean;
    compressionLevel: number;
    qualityLevel: number;
    scaleViewport: boolean;
    viewOnly: boolean;
    addEventListener<Name extends keyof RfbEvents>(name: Name, listener: (event: RfbEvents[Name]) => void): void;
    blur(): void;
    clipboardPasteFrom(text: string): void;
    disconnect(): void;
    focus(): void;
    sendKey(keysym: number, code: string, down?: boolean): void;
    toBlob(callback: (blob: Blob | null) => void, type?: string): void;
  }
}
