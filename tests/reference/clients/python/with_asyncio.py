"""The library `kubernetes_asyncio`: create, list, patch, watch."""

import asyncio

import aiohttp
from kubernetes_asyncio import client, config, watch
from scenario import GROUP, NAMESPACE, VERSION, crate, say


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as api:
        custom, core = client.CustomObjectsApi(api), client.CoreV1Api(api)
        place = (GROUP, VERSION, NAMESPACE, "crates")
        await custom.create_namespaced_custom_object(*place, crate("one"))
        found = await custom.get_namespaced_custom_object(*place, "one")
        assert found["spec"]["replicas"] == 1
        await core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="m"), data={"a": "1"}))
        listed = await core.list_namespaced_config_map(NAMESPACE)
        assert "m" in [each.metadata.name for each in listed.items]
        await custom.delete_namespaced_custom_object(*place, "one")
        revision = listed.metadata.resource_version
        say("watching")
        while True:
            try:
                async with watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=revision) as stream:
                    async for event in stream:
                        revision = event["object"].metadata.resource_version
                        say(f"seen {event['type']} {event['object'].metadata.name}")
                        if event["object"].metadata.name == "last":
                            return
            except (aiohttp.ClientError, client.exceptions.ApiException):
                await asyncio.sleep(0.1)


asyncio.run(main())
