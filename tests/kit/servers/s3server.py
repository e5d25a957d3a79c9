"""An S3 server of ours for tests: buckets in memory, and every request's signature made anew from AWS's description."""

import asyncio
import hashlib
import hmac
import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session"
_STATUS = {200: "OK", 204: "No Content", 403: "Forbidden", 404: "Not Found", 500: "Internal Server Error"}


class S3Server:
    """`faults` are answered in place of the next requests of a method: a status, or `cut` for half an answer."""

    def __init__(self, region: str = "us-east-1", token: str = "") -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.requests: list[str] = []
        self.faults: dict[str, list[int | str]] = {}
        self._region, self._token = region, token
        self._server: asyncio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> "S3Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                await self._answer(writer, method, target, headers, body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        path, query = urlsplit(target).path, dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))
        named = [each for each in ("uploads", "partNumber", "uploadId") if each in query]
        self.requests.append(f"{method} {unquote(path)}{'?' + '&'.join(named) if named else ''}")
        fault = self.faults[method].pop(0) if self.faults.get(method) else None
        extra: dict[str, str] = {}
        if isinstance(fault, int):
            status, content = fault, b"<Error><Code>SlowDown</Code></Error>"
        elif not self._is_signed(method, target, headers):
            status, content = 403, b"<Error><Code>SignatureDoesNotMatch</Code><Key>secret of the request</Key></Error>"
        else:
            status, content, extra = self._do(method, unquote(path), query, body)
        lines = [f"HTTP/1.1 {status} {_STATUS.get(status, 'Other')}", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in extra.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (content[: len(content) // 2] if fault == "cut" else content))
        await writer.drain()
        if fault == "cut":
            writer.close()

    def _do(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        upload = query.get("uploadId", "")
        if method == "POST" and "uploads" in query:
            made = f"upload/{len(self.uploads)}+="
            self.uploads[made] = {}
            return 200, f"<InitiateMultipartUploadResult><UploadId>{made}</UploadId></InitiateMultipartUploadResult>".encode(), {}
        if method == "PUT" and upload in self.uploads:
            self.uploads[upload][int(query["partNumber"])] = body
            return 200, b"", {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'}
        if method == "POST" and upload in self.uploads:
            parts = self.uploads.pop(upload)
            named = re.findall(rb"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>", body)
            right = [(number, f'"{hashlib.md5(each, usedforsecurity=False).hexdigest()}"') for number, each in sorted(parts.items())]
            if [(int(number), tag.decode().replace("&quot;", '"')) for number, tag in named] != right:
                return 200, b"<Error><Code>InvalidPart</Code></Error>", {}
            self.objects[path] = b"".join(each for _, each in sorted(parts.items()))
            return 200, b"<CompleteMultipartUploadResult/>", {}
        if method == "DELETE" and "uploadId" in query:
            self.uploads.pop(upload, None)
            return 204, b"", {}
        if method == "DELETE":
            self.objects.pop(path, None)
            return 204, b"", {}
        if path not in self.objects:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>", {}
        return 200, self.objects[path], {}

    def _is_signed(self, method: str, target: str, headers: dict[str, str]) -> bool:
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        given = query.pop("X-Amz-Signature", "")
        if query.get("X-Amz-Security-Token", "") != self._token or query.get("X-Amz-SignedHeaders") != "host":
            return False
        key, day, region, service, end = query.get("X-Amz-Credential", "////").split("/", 4)
        if (key, region, service, end) != (KEY, self._region, "s3", "aws4_request"):
            return False
        words = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
        canonical = "&".join(f"{name}={value}" for name, value in words)
        request = "\n".join((method, parts.path, canonical, f"host:{headers['host']}", "", "host", "UNSIGNED-PAYLOAD"))
        scope = f"{day}/{region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, hashlib.sha256(request.encode()).hexdigest()))
        sign = f"AWS4{SECRET}".encode()
        for word in (day, region, "s3", "aws4_request", text):
            sign = hmac.new(sign, word.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(sign.hex(), given)
