import { bytes } from "../format/amounts";
import type { CatalogImage } from "../generated/answers";
import { OsMark } from "../parts/osmark";

interface ImagesProps {
  images: readonly CatalogImage[];
  chosen: string;
  choose: (image: CatalogImage) => void;
}

/** Images as tiles. One click chooses, and proposes a name and a size. */
export function Images({ images, chosen, choose }: ImagesProps) {
  if (!images.length) return <p class="quiet">There is no image to start from. Add one: paddock image add.</p>;
  return (
    <fieldset class="tiles">
      <legend class="legend">Image</legend>
      {images.map((image) => (
        <label key={image.id} class={`tile${image.missing ? " missing" : ""}`} title={image.missing || image.address}>
          <input type="radio" name="image" value={image.id} checked={image.id === chosen} disabled={image.missing !== ""} onChange={() => choose(image)} />
          <OsMark name={`${image.os} ${image.name}`} />
          <span class="tile-text">
            <span class="tile-name">
              {image.name} {image.version}
            </span>
            <span class="quiet small">{image.missing || [image.arch, image.size > 0 ? bytes(image.size) : "", image.local ? "is here" : "download"].filter(Boolean).join(" · ")}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
